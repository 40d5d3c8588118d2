"""The plan of an entity purge: a pure function of the stored state, so that a dry run can show it.

The entity is searched in every stored version of the tables of its type, published or not, on every
physical branch, deleted rows included. Purging a node purges its edges, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.branches.tags import all_tags
from omnigraph.catalog.history.commits import iterate_commits, pins_at
from omnigraph.catalog.history.timeline import Track
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import RowKind, parse_version_key
from omnigraph.catalog.state import ManifestState
from omnigraph.constraints.edge_checks import incident
from omnigraph.errors import EntityNotFound, TypeNotFound
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.maintenance.retention import BranchState, branch_states
from omnigraph.storage.lance.files.table_files import Tables, file_names, group_by_table
from omnigraph.storage.lance.lookup import membership
from omnigraph.storage.lance.staging.erasure import AffectedVersion, Eraser, Erasure
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.reader_leases import leased_versions

OUT_OF_REACH: Final = (
    "backups, clones and exports, and the files it was loaded from",
    "snapshots and old object versions that the storage system keeps by itself",
    "the memory of other processes, until they evict it or end",
    "caches of searched texts below OMNIGRAPH_CACHE_DIR on other machines",
    "messages, actors and metadata of commits, which are never rewritten",
    "checksums of removed ids that history keeps, 32 bits each",
    "copies of its values in other entities",
)
"""Copies that no purge can remove; every purge report lists them."""


UNNAMED_AGE: Final = timedelta(hours=1)
"""The longest time for which a write without an intent stages files. While an intent exists, a
purge is refused."""


@dataclass(frozen=True, slots=True)
class PurgedEntity:
    """The entity to purge."""

    kind: str
    type_name: str
    id: str

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.type_name}"


@dataclass(slots=True)
class TablePlan:
    """One table, with its versions that contain the entity."""

    path: str
    key: str
    incarnation: str
    eraser: Eraser
    affected: list[AffectedVersion] = field(default_factory=list)
    indexed: list[TableRef] = field(default_factory=list)
    """Versions with indexes."""
    names: set[str] = field(default_factory=set)
    """Names of files that contain the entity."""
    indexes: set[str] = field(default_factory=set)
    """Names of index files, which may contain it."""
    unnamed: set[str] = field(default_factory=set)
    """Names of files that no version names, of running or failed writes: data files that contain
    the entity, and all index files."""

    @property
    def is_touched(self) -> bool:
        return bool(self.affected)

    @property
    def size(self) -> int:
        return sum(
            info.size
            for holdings in self.eraser.stored.values()
            for name, infos in holdings.files.items()
            if name in self.names
            for info in infos
        )


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """The tables and branches that a purge has to change."""

    entity: PurgedEntity
    branches: list[BranchState]
    tables: list[TablePlan]

    def heads(self) -> dict[TableRef, str]:
        """The table versions of all heads, each with the name of a branch."""
        return {pin.ref: b.branch.name for b in self.branches for pin in b.state.pins.values()}

    def heads_of(self, table: TablePlan) -> list[TableRef]:
        return [ref for ref in self.heads() if ref.path == table.path]

    def live_on(self) -> list[str]:
        """The names of the branches whose heads have the entity."""
        names = (one.branch.name for one in self.branches if self.shown_as(one.state))
        return sorted(names)

    def shown_as(self, state: ManifestState) -> str | None:
        """The name of the entity's type in a head that has the entity; None otherwise."""
        for table in self.tables:
            for pin in state.pins.values():
                mine = pin.ref.path == table.path and pin.key.startswith(self.entity.kind)
                if mine and table.eraser.inspect(table.eraser.store.open(pin.ref)).live:
                    return pin.key.partition(":")[2]
        return None


def plan_purge(repository: Repository, entity: PurgedEntity) -> PurgePlan:
    """Find all versions that contain an entity; raises ``EntityNotFound`` if there are none."""
    branches = branch_states(repository)
    stored, _ = group_by_table(repository.objects.list())
    tables = list(_tables(repository, branches, entity, stored))
    if not any(table.is_touched for table in tables):
        raise EntityNotFound(
            f"no state of this graph has a {entity.kind} of type {entity.type_name} with this id",
            details={"type_name": entity.type_name, "id": entity.id},
        )
    return PurgePlan(entity, branches, [table for table in tables if table.is_touched])


def held_by_readers(repository: Repository, plan: PurgePlan) -> list[str]:
    """The states with a reader lease that contain the entity."""
    touched = {one.ref for table in plan.tables for one in table.affected}
    held = leased_versions(repository)
    found = []
    for one in plan.branches:
        for version in sorted(held.get(one.branch.incarnation, ())):
            pins = pins_at(one.state, min(version, one.state.version)).values()
            if any(pin.ref in touched for pin in pins):
                found.append(f"{one.branch.name} at manifest version {version}")
    return found


def ids_by_incarnation(plan: PurgePlan) -> dict[str, set[str]]:
    """The purged ids, by type incarnation: the entity, and the edges of a node."""
    found: dict[str, set[str]] = {}
    for table in plan.tables:
        one = pa.array([plan.entity.id])
        columns = table.eraser.erasure.columns
        condition = " OR ".join(membership(column, one) or "" for column in columns)
        for affected in (a for a in table.affected if a.live):
            rows = table.eraser.store.open(affected.ref).scan(["id"], condition)
            found.setdefault(table.incarnation, set()).update(rows["id"].to_pylist())
    return found


def tags_touched(plan: PurgePlan) -> list[str]:
    """The tags whose states have the entity."""
    live = {one.ref for table in plan.tables for one in table.affected if one.live}
    by_incarnation = {one.branch.incarnation: one.state for one in plan.branches}
    found = []
    for tag in all_tags(plan.branches[0].state).values():
        state = by_incarnation.get(tag.branch)
        if state is None:
            continue
        pins = pins_at(state, min(tag.manifest_version, state.version)).values()
        if any(pin.ref in live for pin in pins):
            found.append(tag.name)
    return sorted(found)


def commits_that_mention(plan: PurgePlan) -> list[str]:
    """Commits whose message or metadata contains the id; they are not rewritten."""
    wanted = plan.entity.id
    return sorted(
        {
            commit.commit_id
            for one in plan.branches
            for commit in iterate_commits(one.state)
            if any(wanted in text for text in (commit.message or "", *commit.metadata.values()))
        }
    )


def _tables(
    repository: Repository, branches: list[BranchState], entity: PurgedEntity, stored: Tables
) -> Iterator[TablePlan]:
    columns = _columns(branches, entity)
    paths: dict[str, tuple[str, set[str]]] = {}
    incarnations: dict[str, str] = {}
    for one in branches:
        for key, wanted in columns.items():
            track = one.state.timeline.types.get(key, Track())
            rows = {
                parse_version_key(n).path: row
                for n, row in zip(track.names, track.rows, strict=True)
            }
            for pin in one.state.timeline.read_pins(list(rows.values())).values():
                paths.setdefault(pin.ref.path, (key, set()))[1].update(wanted)
                incarnations[pin.ref.path] = pin.incarnation
    for path, (key, wanted) in sorted(paths.items()):
        erasure = Erasure(tuple(sorted(wanted)), _doomed(entity.id))
        eraser = Eraser(repository.tables, repository.objects, erasure, stored.get(path, {}))
        yield _scan_versions(repository, TablePlan(path, key, incarnations[path], eraser))


def _scan_versions(repository: Repository, table: TablePlan) -> TablePlan:
    """Search every stored version of a table, and the files that no version names."""
    named: set[str] = set()
    for holdings in table.eraser.stored.values():
        for version in sorted(holdings.versions):
            opened = repository.tables.open(holdings.ref(version))
            found = table.eraser.inspect(opened)
            named |= (names := file_names(opened))
            if found.touched:
                table.affected.append(found)
                table.names |= table.eraser.names(opened, found)
            if found.indexed:
                table.indexed.append(found.ref)
                table.indexes |= {name for name in names if name.startswith("_indices/")}
    for holdings in table.eraser.stored.values():
        for name in holdings.files.keys() - named:
            rows = [info.path for info in holdings.files[name] if info.path.endswith(".lance")]
            if name.startswith("_indices/") or (
                name.startswith("data/") and any(map(table.eraser.holds, rows))
            ):
                table.unnamed.add(name)
    return table


def abandoned_files(repository: Repository, plan: PurgePlan, table: TablePlan) -> set[str]:
    """The files that no version names and no running write can publish any more.

    If the purge moves the head of the table, a write that staged them is refused. Otherwise young
    files may belong to a running write.
    """
    looks = [table.eraser.inspect(repository.tables.open(ref)) for ref in plan.heads_of(table)]
    moves = any(found.touched or found.indexed for found in looks)
    before = datetime.now(UTC) - UNNAMED_AGE
    return {
        name
        for holdings in table.eraser.stored.values()
        for name in table.unnamed & holdings.files.keys()
        if moves or all(info.modified < before for info in holdings.files[name])
    }


def _columns(branches: list[BranchState], entity: PurgedEntity) -> Mapping[str, set[str]]:
    """The columns that may contain the id of the entity, by type key, under all past names."""
    found: dict[str, set[str]] = {}
    for schema in _schemas(branches):
        owner = next((t for t in schema.types() if t.key == entity.key), None)
        if owner is None:
            continue
        for other in _schemas(branches):
            for same in other.types():
                if same.type_id != owner.type_id:
                    continue
                found.setdefault(same.key, set()).add("id")
                for edge, column in incident(other, same.key):
                    found.setdefault(edge.key, set()).add(column)
    if not found:
        raise TypeNotFound(
            f"no schema of this graph has a {entity.kind} type {entity.type_name}",
            details={"entity_kind": entity.kind, "type_name": entity.type_name},
        )
    return found


def _schemas(branches: list[BranchState]) -> list[AcceptedSchema]:
    rows = {row.object_id: row for one in branches for row in one.state.rows(RowKind.SCHEMA)}
    return [AcceptedSchema.from_json(dict(row.metadata)) for row in rows.values()]


def _doomed(id: str) -> Any:
    def doomed(rows: pa.Table) -> np.ndarray[Any, Any]:
        found = np.zeros(rows.num_rows, dtype=bool)
        for name in rows.column_names:
            found |= np.asarray(pc.fill_null(pc.equal(rows[name], id), False))
        return found

    return doomed
