"""Tallies: how often each whole number occurs in each group.

Where groups and numbers are few, one pass that counts pairs of them answers everything that
aggregates ask: how many there are, their sum, the smallest and the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omnigraph.engine.exec.aggregate import INT64_MAX
from omnigraph.predicates.values import Ints, Values

PAIRS_MAX: Final = 16_384
"""Counts of so many pairs of group and number stay in the processor's nearest cache."""


@dataclass(frozen=True)
class Tally:
    """``counts`` has a row for each group and a column for each number from ``low`` on."""

    counts: Ints
    low: int
    values: Values
    """What was counted."""

    @cached_property
    def sizes(self) -> Ints:
        return np.asarray(self.counts.sum(axis=1))

    def sums(self) -> Ints:
        above = self.counts @ np.arange(self.counts.shape[1])
        return np.asarray(above + self.low * self.sizes)

    def smallest(self) -> Values:
        """The smallest number of each group; a group without any has some number."""
        return self._at((self.counts > 0).argmax(axis=1))

    def largest(self) -> Values:
        last = self.counts.shape[1] - 1
        return self._at(last - (self.counts[:, ::-1] > 0).argmax(axis=1))

    def _at(self, columns: Ints) -> Values:
        data = (columns + self.low).astype(self.values.data.dtype)
        return Values(self.values.type, data, None, self.values.words)


def tally(values: Values, groups: Ints, count: int) -> Tally | None:
    """Count numbers, none of them null, by group; None where there are too many of either."""
    data = values.data
    if data.dtype.kind not in "iu" or not len(data):
        return None
    low, high = int(data.min()), int(data.max())
    width = high - low + 1
    largest_sum = max(abs(low), abs(high)) * len(data)
    if width * count > PAIRS_MAX or largest_sum > INT64_MAX:
        return None
    pairs = groups * width
    pairs += (data - data.dtype.type(low)).astype(groups.dtype, copy=False)
    counts = np.bincount(pairs, minlength=count * width)
    return Tally(counts.reshape(count, width), low, values)
