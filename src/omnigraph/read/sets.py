"""Sets of whole numbers as sorted arrays.

numpy's own set functions import a large module on first use (0.1 s of a command's start) and sort
what is sorted already.
"""

from __future__ import annotations

import numpy as np

from omnigraph.predicates.values import Ints, Mask


def unique(numbers: Ints) -> Ints:
    """Every number once, in order."""
    if len(numbers) < 2:
        return numbers
    found = np.sort(numbers)
    first = np.empty(len(found), dtype=bool)
    first[0] = True
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found if first.all() else found[first]


def among(numbers: Ints, known: Ints) -> Mask:
    """Which numbers are in a sorted set."""
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    places = np.searchsorted(known, numbers)
    places[places == len(known)] = 0
    return np.asarray(known[places] == numbers)


def without(numbers: Ints, known: Ints) -> Ints:
    """The numbers that are not in a sorted set."""
    return np.asarray(numbers[~among(numbers, known)])


def union(first: Ints, second: Ints) -> Ints:
    """Two sets without common members as one."""
    return np.sort(np.concatenate((first, second)))
