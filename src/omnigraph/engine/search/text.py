"""Text search: any term, a phrase, nearly a word, and how relevant.

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

from omnigraph.engine.cache.version_mapping import FRESH_SHARE, Succession
from omnigraph.engine.limits import Check
from omnigraph.engine.search.analyze import terms_of
from omnigraph.engine.search.postings import Postings, build_postings
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask

BM25_K1: Final = 1.2
BM25_B: Final = 0.75


@dataclass(frozen=True, slots=True)
class Part:
    """Postings of some texts, and where each of those is now: -1 for one that is gone; None means
    where it was.
    """

    postings: Postings
    places: Ints | None = None

    def now(self, texts: Ints) -> Ints:
        """Where texts of the postings are, some of them perhaps -1."""
        return texts if self.places is None else self.places[texts]

    def after(self, delta: Succession) -> Ints | None:
        """Where every text is in a later version."""
        return delta.places if self.places is None else delta.now(self.places)


@dataclass(frozen=True)
class Texts:
    """One text property of all entities of a type, to be searched: in two parts when some texts
    were written since the first one was made.
    """

    rows: int
    parts: tuple[Part, ...]
    fresh: pa.Array | None = None
    """The texts of the second part."""

    @classmethod
    def of(cls, postings: Postings) -> Texts:
        return cls(len(postings.lengths), (Part(postings),))

    def after(self, delta: Succession, fresh: pa.Array, rows: int) -> Texts | None:
        """The same for a later version with so many rows, some of them with fresh texts; None when
        too much is new.
        """
        root, *more = self.parts
        parts = [Part(root.postings, root.after(delta))]
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
            parts.append(Part(build_postings(fresh), places))
        return Texts(rows, tuple(parts), fresh)

    @property
    def nbytes(self) -> int:
        places = sum(int(p.places.nbytes) for p in self.parts if p.places is not None)
        fresh = 0 if self.fresh is None else int(self.fresh.nbytes)
        return sum(part.postings.nbytes for part in self.parts) + places + fresh + 4 * self.rows

    @cached_property
    def lengths(self) -> Ints:
        """The words of each text; -1 for none at all."""
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
        """Texts that hold at least one term of the query."""
        found = np.zeros(self.rows, dtype=bool)
        for item in {term.stem for term in terms_of(query)}:
            check()
            found[self._holding(item)[0]] = True
        return found

    def _holding(self, item: str) -> tuple[Ints, Ints]:
        """The texts that hold a stem, and how often."""
        pairs = []
        for part in self.parts:
            texts, counts = part.postings.holding(item)
            texts = part.now(texts)
            exists = texts >= 0
            pairs.append((texts[exists], counts[exists]))
        texts, counts = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return texts, counts

    def relevance(self, query: str, check: Check) -> tuple[Ints, Ints]:
        """The texts that match, in order, and their scores."""
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
        """Texts that hold the terms of the query one after the other."""
        found = np.zeros(self.rows, dtype=bool)
        terms = terms_of(query)
        if terms:
            wanted = [(term.place - terms[0].place, term.stem) for term in terms]
            for part in self.parts:
                texts = part.now(part.postings.with_phrase(wanted, check))
                found[texts[texts >= 0]] = True
        return found

    def nearly(self, query: str, edits_max: int, check: Check) -> Mask:
        """Texts with a word that differs from a word of the query by at most so many edits."""
        found = np.zeros(self.rows, dtype=bool)
        for word in {term.word for term in terms_of(query)}:
            for part in self.parts:
                texts = part.now(part.postings.holding_nearly(word, edits_max, check))
                found[texts[texts >= 0]] = True
        return found
