"""Sets of integers as sorted arrays.

Unlike numpy's set functions these run in chunks with checkpoints and do not sort again.
"""

from __future__ import annotations

import numpy as np

from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask


def unique(numbers: Ints) -> Ints:
    """The distinct numbers, sorted."""
    return chunked.unique(numbers)


def among(numbers: Ints, known: Ints) -> Mask:
    """Which numbers are in a sorted set."""
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    return chunked.mapped(lambda part: _among(part, known), numbers)


def _among(numbers: Ints, known: Ints) -> Mask:
    places = np.searchsorted(known, numbers)
    places[places == len(known)] = 0
    return np.asarray(known[places] == numbers)


def without(numbers: Ints, known: Ints) -> Ints:
    """The numbers that are not in a sorted set."""
    return chunked.compress(chunked.mapped(np.logical_not, among(numbers, known)), numbers)[0]


def union(first: Ints, second: Ints) -> Ints:
    """The union of two disjoint sets."""
    return chunked.sort(chunked.concatenate((first, second)))
