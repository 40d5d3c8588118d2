"""What a branch knows of purges: which old versions of its types they touched, and how.

Purging an entity rewrites old versions under their numbers (see ``storage.erasing``). History rows
never change, so what differs from them is said by one current row per table: how many entities a
version has now, which versions are being rewritten at this moment, and which had to be given up.
The row names the purge and nothing of what was purged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.catalog.rows import Kind, Row, TablePin, place_of
from omnigraph.errors import HistoryPurged


@dataclass(frozen=True, slots=True)
class Purged:
    """The traces of purges in one table, by place (see ``rows.place_of``)."""

    path: str
    rows: Mapping[str, int] = field(default_factory=dict)  # entities that a version has now
    gone: Mapping[str, str] = field(default_factory=dict)  # given up, by which purge
    pending: Mapping[str, str] = field(default_factory=dict)  # being rewritten, by which purge
    files: tuple[str, ...] = ()  # that no version may name when all is done: they are removed

    @classmethod
    def from_row(cls, row: Row) -> Purged:
        facts = row.metadata
        files = tuple(facts["files"])
        return cls(row.location or "", facts["rows"], facts["gone"], facts["pending"], files)

    @property
    def object_id(self) -> str:
        return purged_id(self.path)

    def to_row(self) -> Row:
        facts = {
            "rows": dict(self.rows),
            "gone": dict(self.gone),
            "pending": dict(self.pending),
            "files": list(self.files),
        }
        return Row(self.object_id, Kind.PURGED, facts, location=self.path)

    def begun(
        self, purge_id: str, places: Iterable[str], gone: Iterable[str], files: Iterable[str]
    ) -> Purged:
        """Nobody may read these places until the purge is done, and some never again."""
        return replace(
            self,
            files=tuple(sorted({*self.files, *files})),
            pending={**self.pending, **dict.fromkeys(places, purge_id)},
            gone={**self.gone, **dict.fromkeys(gone, purge_id)},
        )

    def done(self, rows: Mapping[str, int]) -> Purged:
        """Everything that was being rewritten has so many entities now."""
        return replace(self, rows={**self.rows, **rows}, pending={}, files=())


def purged_id(path: str) -> str:
    return f"purged:{path}"


@dataclass(frozen=True, slots=True)
class PurgedPlaces:
    """All of it, of one state of a branch."""

    tables: Mapping[str, Purged] = field(default_factory=dict)

    def corrected(self, pin: TablePin) -> TablePin:
        """A pin of the past as it is since a purge."""
        found = self.tables.get(pin.ref.path)
        rows = None if found is None else found.rows.get(place_of(pin.ref))
        # What is known of its files is about files that are gone.
        return pin if rows is None else replace(pin, rows=rows, digests=None)

    def is_gone(self, path: str, place: str) -> bool:
        found = self.tables.get(path)
        return found is not None and place in found.gone

    def require_readable(self, commit_id: str, pins: Iterable[TablePin]) -> None:
        """Refuse a state that a purge took something from and could not put together again."""
        for pin in pins:
            found = self.tables.get(pin.ref.path)
            if found is None:
                continue
            place = place_of(pin.ref)
            if place in found.gone:
                raise _purged(found.gone[place], commit_id, pin.key, "was given up by")
            if place in found.pending:
                raise _purged(found.pending[place], commit_id, pin.key, "is being rewritten by")


def _purged(purge_id: str, commit_id: str, key: str, what: str) -> HistoryPurged:
    kind, _, name = key.partition(":")
    return HistoryPurged(
        f"commit {commit_id} cannot be read: its state of {kind} type {name} {what} purge "
        f"{purge_id}",
        details={"commit_id": commit_id, "type_key": key, "purge_id": purge_id},
    )
