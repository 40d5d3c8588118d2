"""Purging an entity: out of every branch's head first, then out of everything older.

The order is what keeps others safe. First the entity is deleted, by ordinary commits; then every
head that still names a file with something of it moves on to files without: from then on no writer
can build on what holds it. Only then are older versions rewritten under their numbers, while
nobody is shown them, and the files removed. Whatever is interrupted is finished by purging again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.history.attribution import erase_entities
from omnigraph.catalog.history.purged import Purged, purged_id
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import place_of
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import Conflict, Contention, EntityNotFound, PurgeRefused
from omnigraph.maintenance.indexes import build_all
from omnigraph.maintenance.purge_plan import (
    OUT_OF_REACH,
    Entity,
    PurgePlan,
    TablePlan,
    abandoned,
    commits_that_mention,
    held_by_readers,
    ids_by_lifetime,
    plan_purge,
    tags_touched,
)
from omnigraph.model.ids import new_ulid
from omnigraph.mutation.batch import Batch
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Committer, WriteOptions
from omnigraph.prepare.preparer import writable
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.table_files import file_names, hold
from omnigraph.storage.lance.staging.compaction import drop_deleted, stage_pieces
from omnigraph.storage.lance.staging.erasure import Affected
from omnigraph.storage.lance.staging.indexes import stage_drop_indexes, stored_indexes
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, TableRef, operation_properties
from omnigraph.storage.paths import STAGING_PREFIX
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.recovery.operator import Operator
from omnigraph.transaction.transaction import WriteTransaction

KIND: Final = "purge"
ROUNDS_MAX: Final = 20
"""How often heads are looked at again: each round another writer, or a new branch, was faster."""


@dataclass(frozen=True, slots=True)
class PurgedType:
    """What goes, or went, of one type."""

    type_key: str
    versions: int
    files: int
    bytes: int
    versions_given_up: int
    unnamed_files: int

    def to_json(self) -> dict[str, Any]:
        return {
            "type_key": self.type_key,
            "versions_rewritten": self.versions - self.versions_given_up,
            "versions_given_up": self.versions_given_up,
            "files": self.files,
            "bytes": self.bytes,
            "unnamed_files": self.unnamed_files,
        }


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge did, or would do, and what it cannot do."""

    purge_id: str
    confirmed: bool
    branches: list[str]
    tags: list[str]
    types: list[PurgedType]
    commits: list[str] = field(default_factory=list)
    """Commits whose own words mention the id."""
    out_of_reach: tuple[str, ...] = OUT_OF_REACH

    def to_json(self) -> dict[str, Any]:
        return {
            "purge_id": self.purge_id,
            "confirmed": self.confirmed,
            "branches": self.branches,
            "tags": self.tags,
            "types": [one.to_json() for one in self.types],
            "commits_that_mention_it": self.commits,
            "out_of_reach": list(self.out_of_reach),
        }


class EntityPurge:
    """One purge of one entity."""

    def __init__(
        self,
        repository: Repository,
        transaction: WriteTransaction,
        entity: Entity,
        actor: str | None = None,
    ) -> None:
        self._repository = repository
        self._transaction = transaction
        self._entity = entity
        self._actor = actor
        self._id = new_ulid()
        self._indexed: dict[str, set[str]] = {}  # branches and types whose indexes went

    def foretell(self) -> PurgeReport:
        """What would be done; changes nothing."""
        return self._report(plan_purge(self._repository, self._entity), confirmed=False)

    def run(self) -> PurgeReport:
        self._require_nobody_writes()
        self._repository.main.current()  # what others left is in the newest state
        finished = finish_entity_purges(self._repository)
        try:
            plan = plan_purge(self._repository, self._entity)
        except EntityNotFound:
            if not finished:
                raise
            return PurgeReport(self._id, True, [], [], [])
        held = held_by_readers(self._repository, plan)
        if held:
            raise PurgeRefused(
                f"somebody holds a state of the entity: {', '.join(held)}",
                details={"held": held},
            )
        report = self._report(plan, confirmed=True)
        for table in plan.tables:
            self._note(plan, table, files=abandoned(self._repository, plan, table))
        self._clear_heads(plan)
        settled = self._settled_plan()
        gone, objects = ids_by_lifetime(settled), self._repository.objects
        erase_entities(objects, gone)
        hit("erase.before_versions")
        self._rewrite(settled)
        erase_entities(objects, gone)  # a merge may have looked at old versions meanwhile
        for name, keys in sorted(self._indexed.items()):
            branch = self._repository.branch(name)
            build_all(self._repository, self._transaction, branch, sorted(keys))
        return report

    # -- before anything ---------------------------------------------------------------------------

    def _require_nobody_writes(self) -> None:
        """What is unfinished may hold the entity where nobody looks for it."""
        Operator(self._repository, self._transaction.recovery).recover()
        pending = self._transaction.recovery.pending
        records = [f.path for i in pending.incarnations() for f in pending.of_branch(i)]
        listed = self._repository.objects.list(STAGING_PREFIX)
        staged = [info.path for info in listed if info.path.endswith("/intent.json")]
        if records or staged:
            raise PurgeRefused(
                f"{len(records) + len(staged)} unfinished writes may hold the entity",
                remedy="Wait for them, or end what a dead bulk load left with `omnigraph cleanup`; "
                "then purge again.",
                details={"pending": [*records, *staged]},
            )

    # -- heads -------------------------------------------------------------------------------------

    def _clear_heads(self, plan: PurgePlan) -> None:
        """Until no head names a file, or an index, that may hold something of the entity."""
        for _ in range(ROUNDS_MAX):
            branches = list(all_branches(self._repository.main.current()).values())
            steps = [self._clear(plan, branch) for branch in branches]
            if not any(steps):
                return
        raise Contention(
            f"other writers were faster {ROUNDS_MAX} times; the purge has not removed any file",
        )

    def _clear(self, plan: PurgePlan, branch: Branch) -> bool:
        """One step of one branch; False when there was nothing to do."""
        try:
            type_name = plan.shown_as(self._repository.manifest(branch).current())
            if type_name is not None:
                self._delete(branch, type_name)
                return True
            return self._move_on(plan, branch)
        except Conflict:
            return True  # looked at again in the next round

    def _delete(self, branch: Branch, type_name: str) -> None:
        """An ordinary commit; what it says must not tell what was purged."""
        info = WriteInfo(KIND, self._actor, None, {"purge_id": self._id})
        committer = Committer(self._repository, self._transaction)
        batch = Batch(committer, WriteOptions(branch.name, info), BlobPolicy())
        if self._entity.kind == "node":
            batch.delete(type_name, self._entity.id)
        else:
            batch.delete_edge(type_name, self._entity.id)
        batch.commit()

    def _move_on(self, plan: PurgePlan, branch: Branch) -> bool:
        """Have a head's tables name other files and no index; adds no commit."""
        self._transaction.enter(branch)
        operation_id = new_ulid()
        properties = operation_properties(operation_id, KIND)
        snapshot = self._repository.snapshot(branch)
        by_path = {table.path: table for table in plan.tables}
        tables = []
        for pin in snapshot.pins.values():
            table = by_path.get(pin.ref.path)
            staged = None
            if table is not None and self._needs_more(table, pin.ref):
                own = writable(self._repository, pin, branch)
                staged = self._staged(table, own, branch, pin.key, properties)
            if staged is not None:
                tables.append(PreparedTable(pin, staged))
        if not tables:
            return False
        info = WriteInfo(KIND, self._actor, makes_commit=False)
        self._transaction.commit(PreparedWrite(operation_id, snapshot, info, tuple(tables)))
        return True

    def _needs_more(self, table: TablePlan, ref: TableRef) -> bool:
        found = table.eraser.look(self._repository.tables.open(ref))
        return found.touched or found.indexed

    def _staged(
        self,
        table: TablePlan,
        own: PinnedTable,
        branch: Branch,
        key: str,
        properties: Mapping[str, str],
    ) -> StagedWrite | None:
        indexes = stored_indexes(own)
        if indexes:
            self._indexed.setdefault(branch.name, set()).add(key)
            return stage_drop_indexes(own, indexes, properties)
        touched = table.eraser.look(own).fragments
        return stage_pieces(own, drop_deleted(own, only=touched), properties)

    def _settled_plan(self) -> PurgePlan:
        plan = plan_purge(self._repository, self._entity)
        heads = plan.heads()
        busy = {heads[o.ref] for t in plan.tables for o in t.affected if o.ref in heads}
        if busy:
            raise Contention(
                f"branch {sorted(busy)[0]} came to hold the entity again; no file was removed"
            )
        return plan

    # -- everything older --------------------------------------------------------------------------

    def _rewrite(self, plan: PurgePlan) -> None:
        heads = plan.heads()
        for table in plan.tables:
            self._note(plan, table, table.affected, table.names | table.indexes)
            for affected in table.affected:
                self._erase(table, affected)
                hit("erase.after_version")
            bare = [r for r in table.indexed if r not in heads]
            for ref in bare:
                if ref not in {one.ref for one in table.affected}:
                    nothing = Affected(ref, (), 0, indexed=True, has_blobs=False)
                    table.eraser.erase(self._repository.tables.open(ref), nothing)
            self._repository.tables.forget(table.path)
            hit("erase.after_versions")
            if not finish_entity_purge(self._repository, table.path):
                raise Contention(
                    "another writer brought files of the entity back; no file was removed"
                )

    def _erase(self, table: TablePlan, affected: Affected) -> None:
        if affected.has_blobs:
            stored = table.eraser.stored[affected.ref.branch]
            self._repository.objects.delete(stored.versions[affected.ref.version].path)
        else:
            table.eraser.erase(self._repository.tables.open(affected.ref), affected)

    def _note(
        self,
        plan: PurgePlan,
        table: TablePlan,
        affected: Sequence[Affected] = (),
        files: Collection[str] = (),
    ) -> None:
        """Tell every branch which versions are not to be read from now on, and what will go."""
        given_up = [place_of(one.ref) for one in affected if one.has_blobs]
        rewritten = [place_of(o.ref) for o in affected if o.live and not o.has_blobs]
        for one in plan.branches:
            manifest = self._repository.manifest(one.branch)
            before = _noted(manifest.current(), table.path)
            noted = before.begun(self._id, rewritten, given_up, files)
            if noted != before:
                row = noted.to_row()
                manifest.publish(Publication(new_ulid(), one.branch.name, put=(row,)))

    def _report(self, plan: PurgePlan, *, confirmed: bool) -> PurgeReport:
        types = [
            PurgedType(
                table.key,
                len(table.affected),
                len(table.names),
                table.size,
                sum(one.has_blobs for one in table.affected),
                len(table.unnamed),
            )
            for table in plan.tables
        ]
        return PurgeReport(
            self._id,
            confirmed,
            plan.live_on(),
            tags_touched(plan),
            types,
            commits_that_mention(plan),
        )


def finish_entity_purges(repository: Repository) -> bool:
    """Finish what interrupted purges left but for the last step; whether there was anything.

    Looks at the state that was seen last: whoever opens a graph has just seen the newest. Safe
    beside a purge that is going on: what no version names any more is nobody's.
    """
    main = repository.main.warm()
    left = [table.path for table in main.purged.tables.values() if table.files]
    done = [finish_entity_purge(repository, path) for path in left]
    return any(done)


def finish_entity_purge(repository: Repository, path: str) -> bool:
    """Remove the files that a purge noted and say that it is done; False while any is in use."""
    branches = list(all_branches(repository.main.current()).values())
    notes = {b: _noted(repository.manifest(b).current(), path) for b in branches}
    files = {name for noted in notes.values() for name in noted.files}
    stored = hold(repository.objects.list(path))[0].get(path, {})
    rows: dict[str, int] = {}
    for holdings in stored.values():
        for version in holdings.versions:
            table = repository.tables.open(holdings.ref(version))
            if files & file_names(table):
                return False
            rows[place_of(table.ref)] = table.rows
    for holdings in stored.values():
        for name in files & holdings.files.keys():
            for info in holdings.files[name]:
                repository.objects.delete(info.path)
    hit("erase.after_files")
    for branch, noted in notes.items():
        if noted.files:
            row = noted.done({p: n for p, n in rows.items() if p in noted.pending}).to_row()
            repository.manifest(branch).publish(Publication(new_ulid(), branch.name, put=(row,)))
    return True


def _noted(state: ManifestState, path: str) -> Purged:
    row = state.row(purged_id(path))
    return Purged(path) if row is None else Purged.from_row(row)
