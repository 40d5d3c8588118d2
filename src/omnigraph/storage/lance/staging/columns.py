"""Staged column changes: no row is rewritten, renumbered or stamped as updated.

Renaming, hiding, restoring and dropping a column, and adding one without values, change metadata
only. A column with values (a wider type, a backfill) is one more file per fragment. A change of
several steps cannot be one strict commit: it is done on a fresh, unreferenced fork, and the write
transaction commits the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation, Transaction

from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.field_ids import FieldSchema, StoredField
from omnigraph.storage.lance.staging.backfill import PropertyBackfill
from omnigraph.storage.lance.staging.indexes import stage_drop_indexes
from omnigraph.storage.lance.tables import HIDDEN_PREFIX, PinnedTable, StagedWrite, TableStore

_FILLED: Final = f"{HIDDEN_PREFIX}filled:"
"""The temporary name of columns while their values are written; no property can have it."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """The change of one column.

    ``stored`` is its current name (None: it is new); ``field`` its new definition (None: it is
    dropped). ``fill`` gives the values of a new column in existing rows. With ``cast`` the stored
    values are cast to the type of the field, and those in ``mapped`` are replaced; otherwise the
    column must already have this type. A nullable column stays nullable: files may hold nulls, and
    required properties are enforced elsewhere.
    """

    stored: str | None
    field: pa.Field | None
    fill: PropertyBackfill | None = None
    cast: bool = False
    mapped: tuple[tuple[str, str], ...] = ()

    @property
    def needs_values(self) -> bool:
        return self.field is not None and (self.cast or self.fill is not None)


@dataclass(frozen=True, slots=True)
class FilledColumns:
    """Fragments with files of new column values, and the fields of these columns."""

    fragments: tuple[Any, ...]
    columns: Mapping[str, tuple[StoredField, ...]]


Fill = Callable[[PinnedTable, Sequence[ColumnChange]], FilledColumns]
"""Writes the values of columns of a table; no version refers to the files yet."""


def hidden_name(property_id: str) -> str:
    """The name of a column whose property was dropped while its data stays."""
    return HIDDEN_PREFIX + property_id


def stage_columns(
    store: TableStore,
    table: PinnedTable,
    changes: Sequence[ColumnChange],
    properties: Mapping[str, str],
    fork: Callable[[], PinnedTable],
    fill: Fill,
) -> StagedWrite:
    """Stage column changes; ``fork`` makes a fork of the table when one step is not enough.

    ``fill`` writes the files of columns that have values.
    """
    work = _Columns(table, changes)
    stale = work.stale_indexes()
    if not work.filled and not stale:
        return _staged(table, _projection(work.final({})), properties)
    copy = fork()
    dropped = stage_drop_indexes(copy, stale, properties)
    if dropped is not None:
        copy = commit_unpublished(store, dropped)
    work = _Columns(copy, changes)
    if not work.filled:
        return _staged(copy, _projection(work.final({})), properties)
    filled = fill(work.table, work.filled)
    shaped = _staged(work.table, _projection(work.final(filled.columns)), properties)
    copy = commit_unpublished(store, shaped)
    # An Update and not a Merge, which would stamp every row of a changed fragment as updated.
    update = LanceOperation.Update(updated_fragments=list(filled.fragments))
    return _staged(copy, update, properties)


class _Columns:
    """The columns of one table, before and after some changes."""

    def __init__(self, table: PinnedTable, changes: Sequence[ColumnChange]) -> None:
        self.table = table
        self.changes = changes
        self.before = FieldSchema.of(table.dataset.lance_schema)
        self.known = self.before.columns()
        self.filled = [c for c in changes if c.needs_values] if table.fragments else []

    def stale_indexes(self) -> set[str]:
        """Indexes of columns that are renamed or dropped.

        An index is found by the name of its column, which another column may get.
        """
        kept = {c.stored for c in self.changes if c.field is not None and c.field.name == c.stored}
        moved = {c.stored for c in self.changes if c.stored is not None} - kept
        fields = {part.id for name in moved for part in self.known[name or ""]}
        indexes = self.table.dataset.describe_indices() if fields else []
        return {index.name for index in indexes if fields.intersection(index.fields)}

    def final(self, filled: Mapping[str, tuple[StoredField, ...]]) -> FieldSchema:
        """The columns after the change."""
        changed = {c.stored: c for c in self.changes if c.stored is not None}
        fields: list[StoredField] = []
        for name, column in self.known.items():
            change = changed.get(name)
            if change is None:
                fields += column
            elif change.field is not None and not change.cast:
                first, *parts = column
                nullable = first.nullable or change.field.nullable
                fields += [first.renamed(change.field.name).made_nullable(nullable), *parts]
        last = max([self.before.last_id, *(f.id for column in filled.values() for f in column)])
        for change in self.changes:
            if change.field is None or (change.stored is not None and not change.cast):
                continue
            new = FieldSchema.of_column(change.field).fields
            found = filled.get(change.field.name)
            if found is None:
                fields += [field.shifted(last + 1) for field in new]
                last += len(new)
            else:
                fields += [field.numbered(like) for field, like in zip(new, found, strict=True)]
        return FieldSchema(self.before.metadata, tuple(fields))


def fill_in_process(table: PinnedTable, wanted: Sequence[ColumnChange]) -> FilledColumns:
    """Write the values of columns in this process."""
    return fill_fragments(table, wanted, list(table.fragments))


def fill_fragments(
    table: PinnedTable, wanted: Sequence[ColumnChange], fragment_ids: Iterable[int]
) -> FilledColumns:
    """Write the values of columns for some fragments, one file for each."""
    stored = {c.stored for c in wanted if c.stored is not None}
    read = sorted(stored.union(*(c.fill.reads() for c in wanted if c.fill is not None)))

    def values(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [_values(change, batch) for change in wanted]
        names = [_FILLED + str(at) for at in range(len(wanted))]
        return pa.record_batch(columns, names=names)

    fragments, schema = [], None
    with translated(f"filling columns of {table.ref.path}"):
        for number in fragment_ids:
            fragment = table.dataset.get_fragment(number)
            made, schema = fragment.merge_columns(values, columns=read or ["id"])
            fragments.append(made)
    columns = FieldSchema.of(schema).columns()
    kept = {
        change.field.name: columns[_FILLED + str(at)]
        for at, change in enumerate(wanted)
        if change.field is not None
    }
    return FilledColumns(tuple(fragments), kept)


def _values(change: ColumnChange, batch: pa.RecordBatch) -> pa.Array:
    assert change.field is not None
    if change.stored is not None:
        return with_names(batch[change.stored], change.mapped).cast(change.field.type)
    assert change.fill is not None
    return change.fill.values(batch).cast(change.field.type)


def with_names(values: Any, names: Sequence[tuple[str, str]]) -> Any:
    """The strings with some of them replaced."""
    found = values
    for old, new in names:
        found = pc.if_else(pc.fill_null(pc.equal(values, old), False), new, found)
    return found


def _projection(schema: FieldSchema) -> Any:
    """The only Lance operation that can change names, nullability and the set of columns."""
    return LanceOperation.Project(schema.to_lance())


def commit_unpublished(store: TableStore, staged: StagedWrite) -> PinnedTable:
    """Commit to a fork that nothing refers to yet; a crash leaves an orphaned fork."""
    hit("columns.before_step")
    moved = store.commit(staged)
    hit("columns.after_step")
    return moved


def _staged(table: PinnedTable, operation: Any, properties: Mapping[str, str]) -> StagedWrite:
    made = Transaction(table.ref.version, operation, transaction_properties=dict(properties))
    return StagedWrite(table.ref, made, "columns", rows_after=table.rows)
