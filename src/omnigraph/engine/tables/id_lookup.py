"""From id to ordinal: a dictionary for one version, and how it is carried over to the next.

A dictionary of a million ids takes long to make and much memory. Later versions of the same table
share it: they know where its rows went and which ids are new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from omnigraph.engine.cache.version_mapping import Succession
from omnigraph.predicates.values import Ints

ENTRY_BYTES: Final = 160
"""What one entry of a dictionary takes, roughly."""
FRESH_MAX: Final = 50_000
"""With more new ids than this the dictionary is made again."""


@dataclass(frozen=True, slots=True)
class IdLookup:
    """``root`` holds ordinals of an earlier version; ``places`` says where they are now."""

    root: dict[str, int]
    places: Ints | None = None
    fresh: dict[str, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        moved = 0 if self.places is None else int(self.places.nbytes)
        return ENTRY_BYTES * (len(self.root) + len(self.fresh)) + moved

    def get(self, id: str | None) -> int:
        """The ordinal of an id, -1 if there is none."""
        if id is None:
            return -1
        found = self.fresh.get(id)
        if found is not None:
            return found
        found = self.root.get(id, -1)
        return found if self.places is None or found < 0 else int(self.places[found])

    def after(self, delta: Succession, fresh_ids: list[str]) -> IdLookup | None:
        """The same for a later version; None when too much is new."""
        if len(self.fresh) + len(fresh_ids) > FRESH_MAX:
            return None
        kept = self.fresh
        if delta.places is not None:
            now = {id: int(delta.places[at]) for id, at in self.fresh.items()}
            kept = {id: at for id, at in now.items() if at >= 0}
        fresh = {**kept, **dict(zip(fresh_ids, delta.fresh.tolist(), strict=True))}
        places = delta.places if self.places is None else delta.now(self.places)
        return IdLookup(self.root, places, fresh)
