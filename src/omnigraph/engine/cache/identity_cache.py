"""A bounded cache of what was derived from one object, such as a plan or a part of one.

Plans are compared by identity: hashing one by its content costs more than what is cached.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

ENTRIES_MAX: Final = 1_024
"""Derived values per cache; they hold no data of a graph. A full cache is cleared."""

_V = TypeVar("_V")


class IdentityCache(Generic[_V]):
    """Values by the identity of an object and, where one object has several, a detail."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[object, _V]] = {}

    def get(self, owner: object, detail: Hashable = None) -> _V | None:
        found = self._values.get((id(owner), detail))
        return found[1] if found is not None and found[0] is owner else None

    def put(self, owner: object, value: _V, detail: Hashable = None) -> None:
        if len(self._values) >= ENTRIES_MAX:
            self._values.clear()
        # The entry holds its owner, so that the id is not reused while it is there.
        self._values[id(owner), detail] = (owner, value)
