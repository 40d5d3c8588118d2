"""A publication: the requirements and the rows of one manifest commit, as data.

The same object is built by every writer, logged in its recovery record, replayed by recovery and
compared in tests. Building rows from it is a pure function of the state it is applied to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from omnigraph.catalog.rows import Commit, Head, Row, TablePin
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import PreconditionFailed, ReadSetConflict, VersionConflict
from omnigraph.storage.lance.files.checksums import Digests
from omnigraph.storage.lance.fingerprints import Fingerprints
from omnigraph.storage.lance.tables import TableRef


@dataclass(frozen=True, slots=True)
class Requirements:
    """The read set of a write. Each requirement must still hold when it is published.

    ``tables`` covers the types written; ``delete_epochs`` the types an inserted edge points to;
    ``insert_epochs`` the edge types that may point to a deleted node; ``schema_hash`` the schema of
    the branch; ``head`` is the caller's own precondition; ``branches`` the registry of branches and
    tags as the writer read it; ``absent`` are current rows that must not exist; ``kept`` is an
    older manifest version whose state must not be below the horizon.
    """

    tables: Mapping[str, TableRef] = field(default_factory=dict)
    delete_epochs: Mapping[str, int] = field(default_factory=dict)
    insert_epochs: Mapping[str, int] = field(default_factory=dict)
    schema_hash: str | None = None
    head: str | None = None
    branches: tuple[str, ...] | None = None
    absent: tuple[str, ...] = ()
    kept: int | None = None

    def check(self, state: ManifestState) -> None:
        """Raise the typed conflict of the first requirement that does not hold."""
        head = state.head
        if self.head is not None and head.commit_id != self.head:
            raise PreconditionFailed(self.head, head.commit_id)
        if self.schema_hash is not None and head.schema_hash != self.schema_hash:
            raise ReadSetConflict("schema", self.schema_hash, head.schema_hash)
        if self.branches is not None and state.registry != self.branches:
            raise ReadSetConflict("branches", len(self.branches), len(state.registry))
        for object_id in self.absent:
            if state.row(object_id) is not None:
                raise ReadSetConflict(object_id, None, object_id)
        if self.kept is not None and self.kept < state.horizon:
            raise ReadSetConflict("history horizon", self.kept, state.horizon)
        for key, expected in self.tables.items():
            pin = state.pins.get(key)
            if pin is None or pin.ref != expected:
                raise VersionConflict(key, expected.version, pin.ref.version if pin else None)
        for key, epoch in self.delete_epochs.items():
            pin = state.pins.get(key)
            if pin is None or pin.delete_epoch != epoch:
                raise ReadSetConflict(f"deletions of {key}", epoch, pin and pin.delete_epoch)
        for key, epoch in self.insert_epochs.items():
            pin = state.pins.get(key)
            if pin is None or pin.insert_epoch != epoch:
                raise ReadSetConflict(f"insertions into {key}", epoch, pin and pin.insert_epoch)


@dataclass(frozen=True, slots=True)
class TableChange:
    """The new pin of one type, relative to the pin it replaces."""

    key: str
    ref: TableRef
    rows: int
    transaction: str
    deletes: bool
    inserts: bool
    owner: str  # incarnation of the branch whose own copy of the table this is
    removed: Fingerprints = None
    becomes: str | None = None  # the new type key, if the type is renamed
    digests: Digests = None

    def apply(self, pin: TablePin) -> TablePin:
        named = pin if self.becomes is None else replace(pin, key=self.becomes)
        return named.moved(
            self.ref,
            rows=self.rows,
            transaction=self.transaction,
            deletes=self.deletes,
            inserts=self.inserts,
            owner=self.owner,
            removed=self.removed,
            digests=self.digests,
        )


@dataclass(frozen=True, slots=True)
class Publication:
    """One manifest commit, before it is tied to a state.

    ``commit`` is None for upkeep and registry changes, which add no graph commit. ``put`` replaces
    or adds current rows by object id, ``drop`` removes them.
    """

    operation_id: str
    branch: str
    requirements: Requirements = field(default_factory=Requirements)
    changes: tuple[TableChange, ...] = ()
    commit: Commit | None = None
    put: tuple[Row, ...] = ()
    drop: tuple[str, ...] = ()
    schema_hash: str | None = None  # set when this publication changes the schema

    @property
    def commit_id(self) -> str | None:
        return None if self.commit is None else self.commit.commit_id

    def rows(self, state: ManifestState) -> PublicationRows:
        """The rows to write on top of ``state`` (whose requirements must have been checked)."""
        head = state.head
        schema_hash = self.schema_hash or head.schema_hash
        written: list[Row] = []
        for change in self.changes:
            pin = change.apply(state.pins[change.key])
            written += [pin.to_row(), pin.to_version_row()]
        written += self.put
        commit_id = head.commit_id
        if self.commit is not None:
            commit_id = self.commit.commit_id
            parented = replace(self.commit, parent=head.commit_id, schema_hash=schema_hash)
            written.append(parented.to_row())
        new_head = Head(commit_id, schema_hash, self.branch)
        written.append(new_head.to_row())
        replaced = {row.object_id for row in written if row.is_current}
        # On a fresh branch the head still carries the name of the branch it was forked from.
        replaced |= {head.to_row().object_id, *self.drop}
        return PublicationRows(tuple(written), frozenset(replaced))


@dataclass(frozen=True, slots=True)
class PublicationRows:
    """Rows to write, in order, and the object ids whose stored rows they supersede."""

    written: tuple[Row, ...]
    replaced: frozenset[str]
