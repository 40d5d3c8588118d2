"""Indexes of a branch: which ones the schema declares, their state, build and drop.

All indexes of a branch are built in one publish without a graph commit. An index changes the speed
of a query, never its answer. A type without a table of the branch's own is read through the
indexes of the parent branch and skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import InvalidInput, TypeNotFound
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.maintenance.publish import MaintenancePublisher, PublishReport
from omnigraph.storage.lance.staging.indexes import (
    VECTOR_INDEX,
    Build,
    BuiltIndex,
    IndexSpec,
    build_in_process,
    build_indexes,
    has_options,
    stage_built,
    stage_drop_indexes,
    stored_indexes,
)
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

INFO: Final = WriteInfo("index_build", makes_commit=False)
DROP: Final = WriteInfo("index_drop", makes_commit=False)

IndexState = Literal[
    "built", "current", "behind", "missing", "empty", "pending", "inherited", "busy", "undeclared"
]
NO_VECTORS: Final = "no vector has a value yet"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """One index: its property, its state and the rows it covers."""

    type_key: str
    property: str
    kind: str
    state: IndexState
    rows: int = 0
    rows_covered: int = 0
    parts: int = 0
    size_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "type_key": self.type_key,
            "property": self.property,
            "kind": self.kind,
            "state": self.state,
            "rows": self.rows,
            "rows_covered": self.rows_covered,
            "parts": self.parts,
            "size_bytes": self.size_bytes,
        }


def declared_indexes(kind: NodeType | EdgeType) -> tuple[IndexSpec, ...]:
    """The indexes of a type: ids and edge ends always, then the declared properties.

    A declaration of several properties gives each its own index, which Lance combines.
    """
    found = [IndexSpec(name, "BTREE") for name in kind.system_columns]
    declared = {name for columns in (*kind.indexes, *kind.unique) for name in columns}
    for name in sorted((declared | set(kind.key_properties)) & kind.properties.keys()):
        found += _property_indexes(kind, name)
    return tuple(found)


def _property_indexes(kind: NodeType | EdgeType, name: str) -> Iterator[IndexSpec]:
    type_, how = kind.properties[name].type, kind.properties[name].vector
    if type_.is_vector:
        options = (("metric", how.metric), ("num_partitions", how.partitions))
        yield IndexSpec(name, VECTOR_INDEX, options)
    elif type_.is_single:
        yield IndexSpec(name, "BTREE")
        searched = (name,) in kind.indexes and name not in kind.key_properties
        if type_.is_plain_string and searched:
            yield IndexSpec(name, "INVERTED", (("with_position", True),))


@dataclass(frozen=True, slots=True)
class StageIndexBuild:
    """Stages the index builds of types; valid segments are reused by the next attempt."""

    schema: AcceptedSchema
    build: Build = build_in_process
    _built: dict[str, list[BuiltIndex]] = field(default_factory=dict)

    def __call__(
        self, key: str, table: PinnedTable, properties: Mapping[str, str]
    ) -> StagedWrite | None:
        known = [built for built in self._built.get(key, ()) if built.holds_for(table)]
        specs = [
            spec
            for spec in declared_indexes(self.schema.type(key))
            # A concurrent schema change may have dropped the column.
            if spec.column in table.schema.names
            and index_state(table, spec) in ("missing", "behind")
        ]
        if not specs:
            return None
        self._built[key] = [*known, *build_indexes(table, specs, known, self.build)]
        return stage_built(table, self._built[key], properties)


def update_indexes(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    build: Build = build_in_process,
) -> list[IndexReport]:
    """Build the indexes that are missing or do not cover every row, as one publish."""
    transaction.enter(branch)
    publisher = MaintenancePublisher(repository, transaction, branch)
    before = {(r.type_key, r.property, r.kind): r for r in list_indexes(repository, branch)}
    done = build_all(repository, transaction, branch, publisher.own_types(), build)
    return [
        _after(before.get((now.type_key, now.property, now.kind)), now, done)
        for now in list_indexes(repository, branch)
        if now.state != "undeclared"
    ]


def build_all(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    keys: Collection[str],
    build: Build = build_in_process,
) -> PublishReport:
    """Build the declared indexes of these types and publish them."""
    publisher = MaintenancePublisher(repository, transaction, branch)
    return publisher.publish(INFO, keys, StageIndexBuild(_schema(repository, branch), build))


def list_indexes(repository: Repository, branch: Branch) -> list[IndexReport]:
    """Every index that is declared or stored on a branch, and its state."""
    newest = repository.manifest(branch).current()
    snapshot = SnapshotPins.of(branch, newest)
    found: list[IndexReport] = []
    for kind in load_schema(newest, snapshot.schema_hash).types():
        pin = snapshot.pin(kind.key)
        table = repository.tables.open(pin.ref)
        own = pin.owner == branch.incarnation
        wanted = declared_indexes(kind)
        for spec in wanted:
            state = index_state(table, spec) if own else "inherited"
            found.append(_report(kind.key, table, spec, state))
        names = {spec.name for spec in wanted}
        for name in sorted(stored_indexes(table).keys() - names):
            column, _, lance_kind = name.rpartition("_")
            spec = IndexSpec(column, lance_kind.upper())
            found.append(_report(kind.key, table, spec, "undeclared"))
    return found


def drop_indexes(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    type_key: str,
    property: str | None,
) -> list[IndexReport]:
    """Drop the stored indexes of a type, or of one of its properties; returns those."""
    known = [r for r in list_indexes(repository, branch) if r.type_key == type_key]
    if not known:
        raise TypeNotFound(f"there is no type {type_key!r}", details={"type_key": type_key})
    chosen = [r for r in known if r.parts and property in (None, r.property)]
    if not chosen:
        what = type_key if property is None else f"{type_key}.{property}"
        raise InvalidInput(
            f"{what} has no index to drop", remedy="List the indexes with `omnigraph index list`."
        )
    if any(r.state == "inherited" for r in chosen):
        raise InvalidInput(
            f"{type_key} on {branch.name!r} is read through the indexes of the parent branch",
            remedy="Drop them on the parent branch.",
        )
    names = {IndexSpec(r.property, r.kind).name for r in chosen}

    def stage(key: str, table: PinnedTable, properties: Mapping[str, str]) -> StagedWrite | None:
        return stage_drop_indexes(table, names, properties)

    publisher = MaintenancePublisher(repository, transaction, branch)
    publisher.publish(DROP, [type_key], stage)
    return chosen


def index_state(table: PinnedTable, spec: IndexSpec) -> IndexState:
    """The state of an index of the branch's own table."""
    if not table.rows:
        return "empty"
    covered = {f for part in stored_indexes(table).get(spec.name, ()) for f in part.live}
    if covered == set(table.fragments):
        return "current" if has_options(table, spec) else "behind"
    if spec.kind.startswith("IVF") and not _has_value(table, spec.column):
        return "pending"
    return "behind" if covered else "missing"


def _report(key: str, table: PinnedTable, spec: IndexSpec, state: IndexState) -> IndexReport:
    parts = stored_indexes(table).get(spec.name, [])
    covered = {f for part in parts for f in part.live}
    rows = sum(m.num_rows for f, m in table.fragments.items() if f in covered)
    size = sum(part.size for part in parts)
    return IndexReport(key, spec.column, spec.kind, state, table.rows, rows, len(parts), size)


def _after(before: IndexReport | None, now: IndexReport, done: PublishReport) -> IndexReport:
    """The report of an index after a build; the state may also be ``built`` or ``busy``."""
    if now.type_key in done.skipped and now.state in ("missing", "behind"):
        return replace(now, state="busy")
    was = None if before is None else before.state
    return replace(now, state="built") if was in ("missing", "behind") else now


def _schema(repository: Repository, branch: Branch) -> AcceptedSchema:
    state = repository.manifest(branch).current()
    return load_schema(state, state.head.schema_hash)


def _has_value(table: PinnedTable, column: str) -> bool:
    filter_: Any = f"`{column}` IS NOT NULL"
    return bool(table.dataset.count_rows(filter=filter_))
