"""Sets of whole numbers as sorted arrays.

numpy's own set functions import a large module on first use (0.1 s of a command's start) and sort
what is sorted already.
"""

from __future__ import annotations

import numpy as np

from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask


def unique(numbers: Ints) -> Ints:
    """Every number once, in order."""
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
    """Two sets without common members as one."""
    return chunked.sort(chunked.concatenate((first, second)))
