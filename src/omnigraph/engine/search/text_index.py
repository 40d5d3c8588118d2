"""Text search: any term, phrase, fuzzy match, and BM25 relevance.

Scores are BM25 over all texts of the type, whatever other conditions a query has. Equal texts have
equal scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.row_mapping import FRESH_SHARE, RowMapping
from omnigraph.engine.limits import Check
from omnigraph.engine.search.analyze import terms_of
from omnigraph.engine.search.postings import Postings, build_postings
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask

BM25_K1: Final = 1.2
BM25_B: Final = 0.75


@dataclass(frozen=True, slots=True)
class PostingsPart:
    """Postings of some texts, and the current ordinal of each: -1 if it is gone, None if no ordinal
    has changed.
    """

    postings: Postings
    places: Ints | None = None

    def now(self, texts: Ints) -> Ints:
        """The current ordinals of texts of the postings; -1 for those that are gone."""
        return texts if self.places is None else self.places[texts]

    def after(self, delta: RowMapping) -> Ints | None:
        """The ordinals of all texts in a later version."""
        return delta.ordinals if self.places is None else delta.map(self.places)


@dataclass(frozen=True)
class TextIndex:
    """The text index of one property of a type: postings of the base version and, after writes, of
    the texts written since.
    """

    rows: int
    parts: tuple[PostingsPart, ...]
    fresh: pa.Array | None = None
    """The texts of the second part."""

    @classmethod
    def of(cls, postings: Postings) -> TextIndex:
        return cls(len(postings.lengths), (PostingsPart(postings),))

    def after(self, delta: RowMapping, fresh: pa.Array, rows: int) -> TextIndex | None:
        """The index of a later version with ``rows`` rows; None when too many texts are new."""
        root, *more = self.parts
        parts = [PostingsPart(root.postings, root.after(delta))]
        places = delta.fresh
        for part in more:
            now = part.after(delta)
            assert now is not None
            assert self.fresh is not None
            exists = now >= 0
            places = np.concatenate((now[exists], places))
            fresh = pa.concat_arrays([self.fresh.filter(pa.array(exists)), fresh])
        if len(fresh) * FRESH_SHARE > rows:
            return None
        if len(fresh):
            parts.append(PostingsPart(build_postings(fresh), places))
        return TextIndex(rows, tuple(parts), fresh)

    @property
    def nbytes(self) -> int:
        places = sum(int(p.places.nbytes) for p in self.parts if p.places is not None)
        fresh = 0 if self.fresh is None else int(self.fresh.nbytes)
        return sum(part.postings.nbytes for part in self.parts) + places + fresh + 4 * self.rows

    @cached_property
    def lengths(self) -> Ints:
        """The number of words of each text; -1 for null."""
        found = np.full(self.rows, -1, dtype=np.int32)
        for part in self.parts:
            lengths = part.postings.lengths
            places = part.now(np.arange(len(lengths)))
            found[places[places >= 0]] = lengths[places >= 0]
        return found

    @cached_property
    def _present(self) -> int:
        return int(np.count_nonzero(self.lengths >= 0))

    @cached_property
    def _average_length(self) -> float:
        lengths = self.lengths[self.lengths >= 0]
        return float(lengths.mean()) if len(lengths) else 0.0

    def any_term(self, query: str, check: Check) -> Mask:
        """Texts that contain at least one term of the query."""
        found = np.zeros(self.rows, dtype=bool)
        for item in {term.stem for term in terms_of(query)}:
            check()
            found[self._holding(item)[0]] = True
        return found

    def _holding(self, item: str) -> tuple[Ints, Ints]:
        """The texts that contain a stem, with term frequencies."""
        pairs = []
        for part in self.parts:
            texts, counts = part.postings.holding(item)
            texts = part.now(texts)
            exists = texts >= 0
            pairs.append((texts[exists], counts[exists]))
        texts, counts = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return texts, counts

    def relevance(self, query: str, check: Check) -> tuple[Ints, Ints]:
        """The matching texts in order, with their BM25 scores."""
        scores = np.zeros(self.rows, dtype=np.float64)
        matched = np.zeros(self.rows, dtype=bool)
        for item in sorted({term.stem for term in terms_of(query)}):
            check()
            texts, counts = self._holding(item)
            if not len(texts):
                continue
            weight = math.log(1 + (self._present - len(texts) + 0.5) / (len(texts) + 0.5))
            for part in chunked.chunks(len(texts)):
                some, often = texts[part], counts[part]
                length = self.lengths[some] / self._average_length
                scale = BM25_K1 * (1 - BM25_B + BM25_B * length)
                scores[some] += weight * often * (BM25_K1 + 1) / (often + scale)
                matched[some] = True
        places = chunked.nonzero(matched)
        return places, chunked.take(scores, places)

    def phrase(self, query: str, check: Check) -> Mask:
        """Texts that contain the terms of the query as a phrase."""
        found = np.zeros(self.rows, dtype=bool)
        terms = terms_of(query)
        if terms:
            wanted = [(term.place - terms[0].place, term.stem) for term in terms]
            for part in self.parts:
                texts = part.now(part.postings.with_phrase(wanted, check))
                found[texts[texts >= 0]] = True
        return found

    def fuzzy(self, query: str, edits_max: int, check: Check) -> Mask:
        """Texts with a word within ``edits_max`` edits of a word of the query."""
        found = np.zeros(self.rows, dtype=bool)
        for word in {term.word for term in terms_of(query)}:
            for part in self.parts:
                texts = part.now(part.postings.holding_fuzzy(word, edits_max, check))
                found[texts[texts >= 0]] = True
        return found
