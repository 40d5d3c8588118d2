"""Which old versions of a branch's tables purges have rewritten, are rewriting or have dropped.

Purging an entity rewrites old versions in place (see ``storage/lance/staging/erasure.py``). History
rows never change, so one current row per table overrides them: the entity count of a rewritten
version, the versions being rewritten now, and those that had to be dropped. The row names the purge
and nothing of what was purged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.catalog.rows import Row, RowKind, TablePin, version_key
from omnigraph.errors import HistoryPurged


@dataclass(frozen=True, slots=True)
class PurgedTable:
    """The effects of purges on one table, by ``rows.version_key``."""

    path: str
    rows: Mapping[str, int] = field(default_factory=dict)  # entities of a version since a purge
    gone: Mapping[str, str] = field(default_factory=dict)  # dropped, by which purge
    pending: Mapping[str, str] = field(default_factory=dict)  # being rewritten, by which purge
    files: tuple[str, ...] = ()  # to be removed once no version refers to them

    @classmethod
    def from_row(cls, row: Row) -> PurgedTable:
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
        return Row(self.object_id, RowKind.PURGED, facts, location=self.path)

    def begun(
        self, purge_id: str, versions: Iterable[str], gone: Iterable[str], files: Iterable[str]
    ) -> PurgedTable:
        """With ``versions`` unreadable until the purge is done, and ``gone`` for good."""
        return replace(
            self,
            files=tuple(sorted({*self.files, *files})),
            pending={**self.pending, **dict.fromkeys(versions, purge_id)},
            gone={**self.gone, **dict.fromkeys(gone, purge_id)},
        )

    def done(self, rows: Mapping[str, int]) -> PurgedTable:
        """With the rewrite finished: the new entity counts, by version."""
        return replace(self, rows={**self.rows, **rows}, pending={}, files=())


def purged_id(path: str) -> str:
    return f"purged:{path}"


@dataclass(frozen=True, slots=True)
class PurgedVersions:
    """The effects of purges on all tables, of one state of a branch."""

    tables: Mapping[str, PurgedTable] = field(default_factory=dict)

    def corrected(self, pin: TablePin) -> TablePin:
        """A historical pin with the row count it has since a purge."""
        found = self.tables.get(pin.ref.path)
        rows = None if found is None else found.rows.get(version_key(pin.ref))
        # The digests are of files that the purge replaced.
        return pin if rows is None else replace(pin, rows=rows, digests=None)

    def is_gone(self, path: str, version: str) -> bool:
        found = self.tables.get(path)
        return found is not None and version in found.gone

    def require_readable(self, commit_id: str, pins: Iterable[TablePin]) -> None:
        """Refuse a state whose table versions a purge has dropped or is rewriting."""
        for pin in pins:
            found = self.tables.get(pin.ref.path)
            if found is None:
                continue
            version = version_key(pin.ref)
            if version in found.gone:
                raise _purged(found.gone[version], commit_id, pin.key, "was dropped by")
            if version in found.pending:
                raise _purged(found.pending[version], commit_id, pin.key, "is being rewritten by")


def _purged(purge_id: str, commit_id: str, key: str, what: str) -> HistoryPurged:
    kind, _, name = key.partition(":")
    return HistoryPurged(
        f"commit {commit_id} cannot be read: its state of {kind} type {name} {what} purge "
        f"{purge_id}",
        details={"commit_id": commit_id, "type_key": key, "purge_id": purge_id},
    )
