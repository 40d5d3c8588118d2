"""The maintaining half of a graph handle: what keeps a graph small and quick, as methods.

None of them adds a commit or changes what a branch says, but for ``purge``, which removes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from omnigraph.catalog.branches.deleted import deletion_noticed
from omnigraph.catalog.migrations.upgrade import UpgradeReport, upgrade
from omnigraph.catalog.references import resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import InvalidInput
from omnigraph.graph.writing import Forgetting
from omnigraph.maintenance.backup import CopyReport, backup, clone
from omnigraph.maintenance.cleanup import CleanupReport, cleanup
from omnigraph.maintenance.entity_purge import EntityPurge, PurgeReport
from omnigraph.maintenance.fsck import CheckReport, check_graph
from omnigraph.maintenance.indexes import IndexReport, bring_up_to_date, drop_indexes, list_indexes
from omnigraph.maintenance.optimize import Optimized, Rewrite, optimize
from omnigraph.maintenance.purge_plan import Entity
from omnigraph.maintenance.repair import Repaired, repair
from omnigraph.maintenance.retention import Policy
from omnigraph.model import outcome
from omnigraph.model.outcome import told
from omnigraph.storage.lance.files.relocation import relocate
from omnigraph.storage.lance.staging.compaction import rewrite_pieces
from omnigraph.storage.lance.staging.indexes import Build, build_here
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.reader_leases import held
from omnigraph.transaction.transaction import WriteTransaction


class UpkeepMethods(Forgetting):
    """Mixed into ``Graph``."""

    _repository: Repository
    _transaction: WriteTransaction

    def check(self, *, quick: bool = False) -> CheckReport:
        """Check every reference and every row of every branch; ``quick`` reads no rows."""
        return check_graph(self._repository, quick=quick)

    @told()
    def upgrade(self, *, apply: bool = False) -> UpgradeReport:
        """Say which format every branch has and what is missing to the current one.

        With ``apply`` every branch is brought there. Opening for writing does that for main, and
        the first write to a branch for that branch.
        """
        if apply:
            self._transaction.require_writable()
            outcome.works_in_steps()
        return upgrade(self._repository, apply=apply)

    def relocate(self) -> int:
        """Make the branches of a graph that was moved or copied refer to its own files.

        Returns how many versions of branches had to be changed. A handle for writing does the same
        by itself when it first meets a branch that refers to where the graph was before.
        """
        self._transaction.require_writable()
        return relocate(self._repository.objects)

    def indexes(self, branch: str = MAIN) -> list[IndexReport]:
        """Every index that is declared or stored: how much it covers, its parts and its size."""
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            return list_indexes(self._repository, found)

    @told()
    def build_indexes(self, branch: str = MAIN, *, engine: str = "local") -> list[IndexReport]:
        """Build the indexes that are missing or behind. Adds no commit and changes no answer."""
        self._transaction.require_writable()
        found = self._repository.branch(branch)
        build = self._index_builder(engine)
        with deletion_noticed(self._repository, found):
            return bring_up_to_date(self._repository, self._transaction, found, build)

    @told()
    def drop_indexes(
        self, type_key: str, property: str | None = None, branch: str = MAIN
    ) -> list[IndexReport]:
        """Remove the stored indexes of a type (such as ``node:Person``) or of one property.

        The next build makes those anew that the schema declares.
        """
        self._transaction.require_writable()
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            return drop_indexes(self._repository, self._transaction, found, type_key, property)

    @told()
    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Remove old history of every branch, and what dead writers left.

        The newest ``keep`` commits stay, and those not ``older_than`` that; heads, tagged commits
        and what branches were forked from stay in any case. Without ``confirm`` nothing is
        removed: the report says what would be.
        """
        if confirm:
            self._transaction.require_writable()
            outcome.works_in_steps()
        seconds = None if older_than is None else int(older_than.total_seconds())
        policy = Policy(keep, seconds)
        return cleanup(self._repository, self._transaction, policy, confirm=confirm)

    @told()
    def purge(
        self,
        kind: str,
        type_name: str,
        id: str,
        *,
        confirm: bool = False,
        actor: str | None = None,
    ) -> PurgeReport:
        """Remove a node (with its edges) or an edge from every branch and from all history.

        Every version that held it is rewritten without it; the report names what no purge can
        reach. Without ``confirm`` nothing is removed: the report says what would be.
        """
        if kind not in ("node", "edge"):
            raise InvalidInput(f"{kind!r} is neither node nor edge")
        purge = EntityPurge(self._repository, self._transaction, Entity(kind, type_name, id), actor)
        if not confirm:
            return purge.foretell()
        self._transaction.require_writable()
        outcome.works_in_steps()
        try:
            return purge.run()
        finally:
            self._forget_what_was_read()

    @contextmanager
    def hold(self, target: str = MAIN) -> Iterator[SnapshotPins]:
        """Keep a state (a branch, a tag, a commit, a time) readable while the block runs.

        Needed only by those who read one state for longer than an hour beside a cleanup.
        """
        self._transaction.require_writable()
        with deletion_noticed(self._repository, target):
            pinned = resolve(self._repository, target)
        with held(self._repository, pinned) as snapshot:
            yield snapshot

    @told()
    def repair(
        self,
        branch: str = MAIN,
        *,
        confirm: bool = False,
        force: bool = False,
        restore: bool = False,
        actor: str | None = None,
    ) -> list[Repaired]:
        """Find types that were changed from outside, and heal them as far as allowed.

        ``confirm`` takes over maintenance that changed no row; with ``force`` everything else, too,
        as a commit; with ``restore`` the published rows are brought back instead.
        """
        if confirm:
            self._transaction.require_writable()
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            return repair(
                self._repository,
                self._transaction,
                found,
                confirm=confirm,
                force=force,
                restore=restore,
                actor=self._transaction.acting(actor),
            )

    @told()
    def backup(self, target: str | os.PathLike[str]) -> CopyReport:
        """Begin a backup in an empty place, or bring one up to date: only what is new is copied.

        A backup is a graph with all branches and their history. Writers go on meanwhile.
        """
        outcome.works_in_steps()
        return backup(self._repository, parse_location(target))

    @told()
    def clone(self, target: str | os.PathLike[str]) -> CopyReport:
        """Copy this graph, or this backup, to an empty place, where it goes its own way."""
        outcome.works_in_steps()
        return clone(self._repository, parse_location(target))

    @told()
    def optimize(self, branch: str = MAIN, *, engine: str = "local") -> list[Optimized]:
        """Compact small files and bring the indexes up to date, for every type of a branch.

        With engine ``spark`` the files of large tables are written by executors.
        """
        self._transaction.require_writable()
        found = self._repository.branch(branch)
        rewrite = self._rewriter(engine)
        with deletion_noticed(self._repository, found):
            return optimize(self._repository, self._transaction, found, rewrite)

    def _index_builder(self, engine: str) -> Build:
        """What writes the files of an index; ``Graph`` knows the other engines."""
        return build_here

    def _rewriter(self, engine: str) -> Rewrite:
        """What writes compacted files; ``Graph`` knows the other engines."""
        return rewrite_pieces
