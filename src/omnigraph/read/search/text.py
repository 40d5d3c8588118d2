"""Text search: any term, a phrase, nearly a word, and how relevant.

Scores are BM25 over all texts of the type, whatever other conditions a query has. Equal texts have
equal scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.read import sets
from omnigraph.read.search.analyze import STOP_WORDS, Term, split_words, terms_of
from omnigraph.read.search.postings import Postings
from omnigraph.read.search.stem import stem
from omnigraph.read.values import Ints, Mask

if TYPE_CHECKING:
    import pyarrow as pa

BM25_K1: Final = 1.2
BM25_B: Final = 0.75


def any_term(postings: Postings, query: str) -> Mask:
    """Texts that hold at least one term of the query."""
    found = np.zeros(len(postings.lengths), dtype=bool)
    for item in {term.stem for term in terms_of(query)}:
        found[postings.texts_of(postings.by_stem.get(item, []))[0]] = True
    return found


def relevance(postings: Postings, query: str) -> tuple[Ints, Ints]:
    """The texts that match, in order, and their scores."""
    scores = np.zeros(len(postings.lengths), dtype=np.float64)
    matched = np.zeros(len(postings.lengths), dtype=bool)
    total = int(postings.present.sum())
    for item in sorted({term.stem for term in terms_of(query)}):
        texts, counts = postings.texts_of(postings.by_stem.get(item, []))
        if not len(texts):
            continue
        weight = math.log(1 + (total - len(texts) + 0.5) / (len(texts) + 0.5))
        length = postings.lengths[texts] / postings.average_length
        scale = BM25_K1 * (1 - BM25_B + BM25_B * length)
        scores[texts] += weight * counts * (BM25_K1 + 1) / (counts + scale)
        matched[texts] = True
    places = np.flatnonzero(matched)
    return places, scores[places]


def phrase(postings: Postings, query: str, texts: pa.Array) -> Mask:
    """Texts that hold the terms of the query one after the other."""
    import pyarrow as pa

    found = np.zeros(len(postings.lengths), dtype=bool)
    terms = terms_of(query)
    if not terms:
        return found
    candidates: Ints | None = None
    for item in {term.stem for term in terms}:
        holding = postings.texts_of(postings.by_stem.get(item, []))[0]
        candidates = holding if candidates is None else candidates[sets.among(candidates, holding)]
    assert candidates is not None
    if len(terms) == 1:
        found[candidates] = True
        return found
    lists = split_words(texts.take(pa.array(candidates))).to_pylist()
    hits = [_has_sequence(words, terms) for words in lists]
    found[candidates[np.array(hits, dtype=bool)]] = True
    return found


def _has_sequence(words: list[str], terms: list[Term]) -> bool:
    stems = [None if word in STOP_WORDS else stem(word) for word in words if word]
    first = terms[0].place
    wanted = [(term.place - first, term.stem) for term in terms]
    last = wanted[-1][0]
    return any(
        all(stems[at + offset] == item for offset, item in wanted)
        for at in range(len(stems) - last)
    )


def nearly(postings: Postings, query: str, edits_max: int) -> Mask:
    """Texts with a word that differs from a word of the query by at most so many edits."""
    found = np.zeros(len(postings.lengths), dtype=bool)
    wanted = {term.word for term in terms_of(query)}
    words = [
        at
        for at, word in enumerate(postings.words)
        if word and word not in STOP_WORDS and _is_near(word, wanted, edits_max)
    ]
    found[postings.texts_of(words)[0]] = True
    return found


def _is_near(word: str, wanted: Iterable[str], edits_max: int) -> bool:
    return any(
        abs(len(word) - len(other)) <= edits_max and edits(word, other, edits_max) <= edits_max
        for other in wanted
    )


def edits(first: str, second: str, stop_at: int) -> int:
    """Insertions, deletions and replacements between two words; more than ``stop_at`` is enough."""
    if first == second:
        return 0
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first, start=1):
        above, row = row, [at]
        for column, other in enumerate(second, start=1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != other)))
        if min(row) > stop_at:
            return stop_at + 1
    return row[-1]
