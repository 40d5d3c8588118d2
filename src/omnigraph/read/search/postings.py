"""Postings: which texts hold which words, for one property of one version.

Built from the column. Words are kept as they are written (in lower case); stems are groups of
words, so that exact, stemmed and fuzzy searches share one structure.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.frozen import frozen
from omnigraph.read.search.analyze import STOP_WORDS, split_words
from omnigraph.read.search.stem import stem
from omnigraph.read.values import Ints, Mask, Values

if TYPE_CHECKING:
    import pyarrow as pa

_WORD_BYTES: Final = 120
"""What a word takes beside its postings, roughly."""


@frozen(slots=False)
class Postings:
    """``texts[starts[w]:starts[w + 1]]`` hold word ``w``, ``counts`` times each.

    ``lengths`` are the words of each text that are not stop words; -1 for a text that is null.
    """

    words: tuple[str, ...]
    starts: Ints
    texts: Ints
    counts: Ints
    lengths: Ints

    @property
    def nbytes(self) -> int:
        arrays = (self.starts, self.texts, self.counts, self.lengths)
        return sum(int(item.nbytes) for item in arrays) + _WORD_BYTES * len(self.words)

    @cached_property
    def by_stem(self) -> dict[str, list[int]]:
        """The words of each stem; stop words have none."""
        found: dict[str, list[int]] = defaultdict(list)
        for at, word in enumerate(self.words):
            if word not in STOP_WORDS:
                found[stem(word)].append(at)
        return dict(found)

    @cached_property
    def present(self) -> Mask:
        return np.asarray(self.lengths >= 0)

    @cached_property
    def average_length(self) -> float:
        lengths = self.lengths[self.present]
        return float(lengths.mean()) if len(lengths) else 0.0

    def texts_of(self, words: list[int]) -> tuple[Ints, Ints]:
        """The texts that hold any of these words, in order, and how often."""
        if not words:
            none = np.array([], dtype=np.int64)
            return none, none
        parts = [slice(self.starts[at], self.starts[at + 1]) for at in words]
        texts = np.concatenate([self.texts[part] for part in parts])
        counts = np.concatenate([self.counts[part] for part in parts])
        if len(words) == 1:
            return texts, counts
        unique, place = np.unique(texts, return_inverse=True)
        return unique, np.bincount(place, weights=counts).astype(np.int64)


def build_postings(column: Values) -> Postings:
    """The postings of a text property."""
    import pyarrow.compute as pc

    texts: pa.Array = column.to_arrow()
    lists = split_words(texts)
    parents = pc.list_parent_indices(lists).to_numpy()
    encoded = lists.flatten().dictionary_encode()
    words = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    real = np.array([bool(word) for word in words], dtype=bool)
    if not real.all():
        keep = real[codes] if len(codes) else np.zeros(0, dtype=bool)
        parents, codes = parents[keep], codes[keep]
    counted = np.array([word not in STOP_WORDS for word in words], dtype=bool)
    lengths = np.bincount(
        parents[counted[codes]] if len(codes) else parents, minlength=len(texts)
    ).astype(np.int32)
    valid = column.is_valid()
    if valid is not None:
        lengths[~valid] = -1
    keys, counts = np.unique(
        codes.astype(np.int64) * max(1, len(texts)) + parents, return_counts=True
    )
    word_of = keys // max(1, len(texts))
    starts = np.searchsorted(word_of, np.arange(len(words) + 1))
    found = (keys % max(1, len(texts))).astype(np.int32)
    return Postings(tuple(words), starts, found, counts.astype(np.int32), lengths)
