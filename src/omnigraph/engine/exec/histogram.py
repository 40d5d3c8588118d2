"""Histograms: how often each integer occurs in each group.

Where groups and distinct integers are few, one pass that counts their pairs gives count, sum,
minimum and maximum of every group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omnigraph.engine.exec.aggregate import INT64_MAX
from omnigraph.predicates.values import Ints, Values

PAIRS_MAX: Final = 16_384
"""Pairs of group and integer whose counts fit into the processor's first-level cache."""


@dataclass(frozen=True)
class GroupHistogram:
    """``counts`` has a row per group and a column per integer, starting at ``low``."""

    counts: Ints
    low: int
    values: Values
    """The column that was counted."""

    @cached_property
    def sizes(self) -> Ints:
        return np.asarray(self.counts.sum(axis=1))

    def sums(self) -> Ints:
        above = self.counts @ np.arange(self.counts.shape[1])
        return np.asarray(above + self.low * self.sizes)

    def smallest(self) -> Values:
        """The minimum of each group; arbitrary for an empty group."""
        return self._at((self.counts > 0).argmax(axis=1))

    def largest(self) -> Values:
        last = self.counts.shape[1] - 1
        return self._at(last - (self.counts[:, ::-1] > 0).argmax(axis=1))

    def _at(self, columns: Ints) -> Values:
        data = (columns + self.low).astype(self.values.data.dtype)
        return Values(self.values.type, data, None, self.values.dictionary)


def group_histogram(values: Values, groups: Ints, count: int) -> GroupHistogram | None:
    """The histogram of integers without nulls, by group; None where there are too many pairs."""
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
    return GroupHistogram(counts.reshape(count, width), low, values)
