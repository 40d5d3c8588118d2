"""Purges an entity from the heads of all branches first, and then from all older versions.

The order protects concurrent writers. First the entity is deleted by ordinary commits. Then every
head that refers to a file with the entity moves to rewritten files, so that no writer can build on
the old ones. Then older versions are rewritten under their numbers, hidden from readers meanwhile,
and the files are removed. An interrupted purge is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.history.attribution import erase_entities
from omnigraph.catalog.history.purged import PurgedTable, purged_id
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import version_key
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import Conflict, Contention, EntityNotFound, PurgeRefused
from omnigraph.maintenance.indexes import build_all
from omnigraph.maintenance.purge_plan import (
    OUT_OF_REACH,
    PurgedEntity,
    PurgePlan,
    TablePlan,
    abandoned_files,
    commits_that_mention,
    held_by_readers,
    ids_by_incarnation,
    plan_purge,
    tags_touched,
)
from omnigraph.model.ids import new_ulid
from omnigraph.mutation.batch import Batch
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Committer, WriteOptions
from omnigraph.prepare.preparer import writable
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.files.table_files import file_names, group_by_table
from omnigraph.storage.lance.staging.compaction import drop_deleted, stage_pieces
from omnigraph.storage.lance.staging.erasure import AffectedVersion
from omnigraph.storage.lance.staging.indexes import stage_drop_indexes, stored_indexes
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, TableRef, operation_properties
from omnigraph.storage.paths import STAGING_PREFIX
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.recovery.graph_recovery import GraphRecovery
from omnigraph.transaction.transaction import WriteTransaction

KIND: Final = "purge"
ROUNDS_MAX: Final = 20
"""Attempts; after a concurrent write or a new branch all heads are checked again."""


@dataclass(frozen=True, slots=True)
class PurgedType:
    """What a purge removes of one type."""

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
    """What a purge removed, or would remove, and the copies that it cannot reach."""

    purge_id: str
    confirmed: bool
    branches: list[str]
    tags: list[str]
    types: list[PurgedType]
    commits: list[str] = field(default_factory=list)
    """Commits whose message or metadata contains the id."""
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
        entity: PurgedEntity,
        actor: str | None = None,
    ) -> None:
        self._repository = repository
        self._transaction = transaction
        self._entity = entity
        self._actor = actor
        self._id = new_ulid()
        self._indexed: dict[str, set[str]] = {}  # dropped indexes: type keys by branch

    def preview(self) -> PurgeReport:
        """A dry run."""
        return self._report(plan_purge(self._repository, self._entity), confirmed=False)

    def run(self) -> PurgeReport:
        self._require_no_pending_writes()
        self._repository.main.current()  # reads the newest state, for ``finish_entity_purges``
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
                f"readers hold states that contain the entity: {', '.join(held)}",
                details={"held": held},
            )
        report = self._report(plan, confirmed=True)
        for table in plan.tables:
            self._note(plan, table, files=abandoned_files(self._repository, plan, table))
        self._clear_heads(plan)
        settled = self._settled_plan()
        gone, objects = ids_by_incarnation(settled), self._repository.objects
        erase_entities(objects, gone)
        hit("erase.before_versions")
        self._rewrite(settled)
        erase_entities(objects, gone)  # a concurrent merge may have read old versions
        for name, keys in sorted(self._indexed.items()):
            branch = self._repository.branch(name)
            build_all(self._repository, self._transaction, branch, sorted(keys))
        return report

    def _require_no_pending_writes(self) -> None:
        """Raise while unfinished writes may contain the entity in files that are not searched."""
        GraphRecovery(self._repository, self._transaction.recovery).recover()
        pending = self._transaction.recovery.pending
        records = [f.path for i in pending.incarnations() for f in pending.of_branch(i)]
        listed = self._repository.objects.list(STAGING_PREFIX)
        staged = [info.path for info in listed if info.path.endswith("/intent.json")]
        if records or staged:
            raise PurgeRefused(
                f"{len(records) + len(staged)} unfinished writes may contain the entity",
                remedy="Wait for them, or remove the files of a dead bulk load with "
                "`omnigraph cleanup`; then purge again.",
                details={"pending": [*records, *staged]},
            )

    def _clear_heads(self, plan: PurgePlan) -> None:
        """Change heads until none refers to a file or an index that may contain the entity."""
        for _ in range(ROUNDS_MAX):
            branches = list(all_branches(self._repository.main.current()).values())
            steps = [self._clear(plan, branch) for branch in branches]
            if not any(steps):
                return
        raise Contention(
            f"{ROUNDS_MAX} rounds ended in conflicts with other writers; no file was removed",
        )

    def _clear(self, plan: PurgePlan, branch: Branch) -> bool:
        """Make one change to the head of a branch; False when there was nothing to do."""
        try:
            type_name = plan.shown_as(self._repository.manifest(branch).current())
            if type_name is not None:
                self._delete(branch, type_name)
                return True
            return self._rewrite_head(plan, branch)
        except Conflict:
            return True  # checked again in the next round

    def _delete(self, branch: Branch, type_name: str) -> None:
        """Delete the entity by an ordinary commit, whose message must not contain its id."""
        info = WriteInfo(KIND, self._actor, None, {"purge_id": self._id})
        committer = Committer(self._repository, self._transaction)
        batch = Batch(committer, WriteOptions(branch.name, info), BlobPolicy())
        if self._entity.kind == "node":
            batch.delete(type_name, self._entity.id)
        else:
            batch.delete_edge(type_name, self._entity.id)
        batch.commit()

    def _rewrite_head(self, plan: PurgePlan, branch: Branch) -> bool:
        """Publish tables with rewritten files and without indexes; adds no commit."""
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
        found = table.eraser.inspect(self._repository.tables.open(ref))
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
        touched = table.eraser.inspect(own).fragments
        return stage_pieces(own, drop_deleted(own, only=touched), properties)

    def _settled_plan(self) -> PurgePlan:
        plan = plan_purge(self._repository, self._entity)
        heads = plan.heads()
        busy = {heads[o.ref] for t in plan.tables for o in t.affected if o.ref in heads}
        if busy:
            raise Contention(
                f"the entity was written to branch {sorted(busy)[0]} again; no file was removed"
            )
        return plan

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
                    nothing = AffectedVersion(ref, (), 0, indexed=True, has_blobs=False)
                    table.eraser.erase(self._repository.tables.open(ref), nothing)
            self._repository.tables.evict(table.path)
            hit("erase.after_versions")
            if not finish_entity_purge(self._repository, table.path):
                raise Contention(
                    "another writer published files with the entity again; no file was removed"
                )

    def _erase(self, table: TablePlan, affected: AffectedVersion) -> None:
        if affected.has_blobs:
            stored = table.eraser.stored[affected.ref.branch]
            self._repository.objects.delete(stored.versions[affected.ref.version].path)
        else:
            table.eraser.erase(self._repository.tables.open(affected.ref), affected)

    def _note(
        self,
        plan: PurgePlan,
        table: TablePlan,
        affected: Sequence[AffectedVersion] = (),
        files: Collection[str] = (),
    ) -> None:
        """Publish to every branch the versions that must not be read, and the files to remove."""
        given_up = [version_key(one.ref) for one in affected if one.has_blobs]
        rewritten = [version_key(o.ref) for o in affected if o.live and not o.has_blobs]
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
    """Finish the last step of interrupted purges; whether there was any.

    Reads the warm state of main, which an open has just refreshed. Safe during a running purge:
    only files that no version names are removed.
    """
    main = repository.main.warm()
    left = [table.path for table in main.purged.tables.values() if table.files]
    done = [finish_entity_purge(repository, path) for path in left]
    return any(done)


def finish_entity_purge(repository: Repository, path: str) -> bool:
    """Remove the files that a purge recorded, and mark it as done; False while any is in use."""
    branches = list(all_branches(repository.main.current()).values())
    notes = {b: _noted(repository.manifest(b).current(), path) for b in branches}
    files = {name for noted in notes.values() for name in noted.files}
    stored = group_by_table(repository.objects.list(path))[0].get(path, {})
    rows: dict[str, int] = {}
    for holdings in stored.values():
        for version in holdings.versions:
            table = repository.tables.open(holdings.ref(version))
            if files & file_names(table):
                return False
            rows[version_key(table.ref)] = table.rows
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


def _noted(state: ManifestState, path: str) -> PurgedTable:
    row = state.row(purged_id(path))
    return PurgedTable(path) if row is None else PurgedTable.from_row(row)
