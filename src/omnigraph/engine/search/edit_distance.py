"""Levenshtein distance of many words to one: insertions, deletions and substitutions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.limits import Check
from omnigraph.predicates.values import Ints

CELLS: Final = 1 << 20
"""Cells of distance tables that are in memory at a time."""


@dataclass(frozen=True)
class Letters:
    """The code points of many words, grouped by length."""

    words: pa.Array

    @cached_property
    def _by_length(self) -> dict[int, tuple[Ints, Ints]]:
        """For each length: its words, and a matrix of code points with one column per word."""
        lengths = np.asarray(pc.utf8_length(self.words).to_numpy(zero_copy_only=False))
        every = np.frombuffer("".join(self.words.to_pylist()).encode("utf-32-le"), dtype="<u4")
        starts = np.cumsum(lengths) - lengths
        found = {}
        for length in np.unique(lengths).tolist():
            words = np.flatnonzero(lengths == length)
            found[length] = words, every[starts[words] + np.arange(length)[:, None]]
        return found

    def near(self, word: str, edits_max: int, check: Check) -> Ints:
        """The words within ``edits_max`` edits of this one."""
        wanted = np.frombuffer(word.encode("utf-32-le"), dtype="<u4")
        found = [np.array([], dtype=np.int64)]
        for length, (words, letters) in self._by_length.items():
            if abs(length - len(wanted)) > edits_max:
                continue
            batch = max(1, CELLS // (len(wanted) + 1))
            for start in range(0, len(words), batch):
                part = slice(start, start + batch)
                fits = _within(letters[:, part], wanted, edits_max, check)
                found.append(words[part][fits])
        return np.sort(np.concatenate(found))


def _within(letters: Ints, wanted: Ints, edits_max: int, check: Check) -> Ints:
    """The columns within ``edits_max`` edits: dynamic programming for all words at once.

    Words that exceed the limit are dropped early.
    """
    left = np.arange(letters.shape[1])
    row = np.repeat(np.arange(len(wanted) + 1, dtype=np.int32)[:, None], len(left), axis=1)
    for at, given in enumerate(letters, start=1):
        check()
        above, row = row, np.empty_like(row)
        row[0] = at
        mine = given[left]
        for column, letter in enumerate(wanted, start=1):
            cheapest = np.minimum(above[column], row[column - 1]) + 1
            row[column] = np.minimum(cheapest, above[column - 1] + (mine != letter))
        alive = row.min(axis=0) <= edits_max
        if not alive.all():
            left, row = left[alive], row[:, alive]
    return np.asarray(left[row[-1] <= edits_max])
