"""Id look-up: a dictionary from id to ordinal, shared by successive versions of a table.

A dictionary of a million ids is expensive to build and large. Later versions share it and add a
mapping from old to new ordinals and a small dictionary of new ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from omnigraph.engine.cache.row_mapping import RowMapping
from omnigraph.predicates.values import Ints

ENTRY_BYTES: Final = 160
"""Estimated bytes per dictionary entry."""
FRESH_MAX: Final = 50_000
"""With more new ids than this the dictionary is rebuilt."""


@dataclass(frozen=True, slots=True)
class IdLookup:
    """``root`` holds ordinals of an earlier version; ``moved`` maps them to the current ones."""

    root: dict[str, int]
    moved: Ints | None = None
    fresh: dict[str, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        mapping = 0 if self.moved is None else int(self.moved.nbytes)
        return ENTRY_BYTES * (len(self.root) + len(self.fresh)) + mapping

    def get(self, id: str | None) -> int:
        """The ordinal of an id, -1 if there is none."""
        if id is None:
            return -1
        found = self.fresh.get(id)
        if found is not None:
            return found
        found = self.root.get(id, -1)
        return found if self.moved is None or found < 0 else int(self.moved[found])

    def after(self, delta: RowMapping, fresh_ids: list[str]) -> IdLookup | None:
        """The look-up of a later version; None when too many ids are new."""
        if len(self.fresh) + len(fresh_ids) > FRESH_MAX:
            return None
        kept = self.fresh
        if delta.ordinals is not None:
            now = {id: int(delta.ordinals[at]) for id, at in self.fresh.items()}
            kept = {id: at for id, at in now.items() if at >= 0}
        fresh = {**kept, **dict(zip(fresh_ids, delta.fresh.tolist(), strict=True))}
        moved = delta.ordinals if self.moved is None else delta.map(self.moved)
        return IdLookup(self.root, moved, fresh)
