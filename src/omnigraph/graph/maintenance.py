"""``graph.maintenance``: checks, indexes, compaction, cleanup, repair, copies and recovery."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidInput
from omnigraph.model import arguments

if TYPE_CHECKING:
    from omnigraph.catalog.migrations.upgrade import UpgradeReport
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.graph.backend import MaintenanceBackend
    from omnigraph.ingest.load import LoadResult
    from omnigraph.maintenance.backup import CopyReport
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.entity_purge import PurgeReport
    from omnigraph.maintenance.fsck import CheckReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import Optimized
    from omnigraph.maintenance.repair import Repaired
    from omnigraph.transaction.recovery.graph_recovery import PendingWrite, RecoveryReport


class Maintenance:
    """The maintenance of a graph, as ``graph.maintenance``.

    Readers and writers are not blocked. Only a purge and a forced repair change content.
    """

    def __init__(self, backend: MaintenanceBackend) -> None:
        self._backend = backend

    @property
    def recovered_at_open(self) -> RecoveryReport:
        """The unfinished writes that opening the graph has resolved."""
        return self._backend.recovered_at_open

    def check(self, *, quick: bool = False) -> CheckReport:
        """Check every reference and every row of every branch. Changes nothing.

        Args:
            quick: Follow references only; read no rows.

        Returns:
            What was checked, and a finding for everything that is wrong.

        Example:
            >>> graph.maintenance.check().healthy
            True
        """
        return self._backend.check(quick=arguments.truth("quick", quick))

    def upgrade(self, *, apply: bool = False) -> UpgradeReport:
        """The storage format of every branch, and the steps to the current one.

        Opening for writing runs the steps of ``main``; the first write to a branch runs those of
        that branch.

        Args:
            apply: Run the steps of every branch.

        Returns:
            The steps per branch.

        Raises:
            ReadOnly: ``apply`` on a read-only handle.

        Example:
            >>> graph.maintenance.upgrade().needed
            False
        """
        return self._backend.upgrade(apply=arguments.truth("apply", apply))

    def relocate(self) -> int:
        """Make the branches of a graph that was moved or copied refer to its own files.

        A handle for writing does the same when it first meets such a branch.

        Returns:
            How many versions of branches were changed.

        Raises:
            ReadOnly: The handle is read-only.

        Example:
            >>> _ = graph.maintenance.relocate()
            >>> graph.maintenance.relocate()
            0
        """
        return self._backend.relocate()

    def indexes(self, branch: str = "main") -> list[IndexReport]:
        """Every index that is declared or stored: its state, coverage, parts and size.

        Args:
            branch: The branch.

        Returns:
            One report per index.

        Raises:
            BranchNotFound: There is no such branch.

        Example:
            >>> graph.maintenance.indexes()[0].type_key
            'node:City'
        """
        return self._backend.indexes(arguments.text("branch", branch))

    def build_indexes(self, branch: str = "main", *, engine: str = "local") -> list[IndexReport]:
        """Build the indexes that are missing or stale. Adds no commit and changes no answer.

        Args:
            branch: The branch.
            engine: ``local``, ``spark``, or ``auto`` (by size).

        Returns:
            The indexes as they are afterwards.

        Raises:
            BranchNotFound: There is no such branch.
            ReadOnly: The handle is read-only.

        Example:
            >>> {report.state for report in graph.maintenance.build_indexes()}
            {'built'}
        """
        return self._backend.build_indexes(
            arguments.text("branch", branch), arguments.text("engine", engine)
        )

    def drop_indexes(
        self, type_key: str, property: str | None = None, branch: str = "main"
    ) -> list[IndexReport]:
        """Remove the stored indexes of a type. The next build makes the declared ones again.

        Args:
            type_key: The type, such as ``node:Person``.
            property: Only the indexes of this property.
            branch: The branch.

        Returns:
            The indexes that were removed.

        Raises:
            BranchNotFound: There is no such branch.
            ReadOnly: The handle is read-only.
            TypeNotFound: There is no such type.

        Example:
            >>> _ = graph.maintenance.build_indexes()
            >>> [report.property for report in graph.maintenance.drop_indexes("node:City")]
            ['id', 'name']
        """
        return self._backend.drop_indexes(
            arguments.text("type_key", type_key),
            arguments.optional_text("property", property),
            arguments.text("branch", branch),
        )

    def optimize(self, branch: str = "main", *, engine: str = "local") -> list[Optimized]:
        """Compact small files and bring the indexes up to date, for every type of a branch.

        Args:
            branch: The branch.
            engine: ``local``, or ``spark``: executors write the files of large tables.

        Returns:
            What was done, per type.

        Raises:
            BranchNotFound: There is no such branch.
            ReadOnly: The handle is read-only.

        Example:
            >>> [done.type_key for done in graph.maintenance.optimize()][0]
            'edge:Knows'
        """
        return self._backend.optimize(
            arguments.text("branch", branch), arguments.text("engine", engine)
        )

    def tend(self, result: LoadResult) -> list[str]:
        """Compact and index what a load has written that was given ``upkeep=False``.

        The load stands whether or not this is run; the next write to a type tends it, too.

        Args:
            result: What the load returned.

        Returns:
            The type keys whose table was compacted or indexed.

        Raises:
            ReadOnly: The handle is read-only.

        Example:
            >>> line = b'{"type": "Person", "data": {"name": "Zoe"}}'
            >>> loaded = graph.load(line, mode="append", upkeep=False)
            >>> graph.maintenance.tend(loaded)
            []
        """
        if not hasattr(result, "rows_written"):
            raise InvalidInput(
                f"`result` must be what a load returned, not {type(result).__name__}",
                remedy="Pass the result of `graph.load`.",
            )
        return self._backend.tend(result.branch, result.rows_written)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Remove old history of every branch, and abandoned files of dead writers.

        A commit stays if one of the two limits keeps it. Heads, tagged commits and what branches
        were forked from always stay.

        Args:
            keep: Keep this many of the newest commits of every branch.
            older_than: Keep commits that are younger.
            confirm: Remove it; otherwise the report is a dry run.

        Returns:
            What was removed, or would be.

        Raises:
            InvalidInput: Neither limit is given.
            ReadOnly: ``confirm`` on a read-only handle.

        Example:
            >>> graph.maintenance.cleanup(keep=10).bytes_removed
            0
        """
        age = arguments.optional_instance("older_than", older_than, timedelta)
        return self._backend.cleanup(
            arguments.optional_whole("keep", keep),
            age,
            confirm=arguments.truth("confirm", confirm),
        )

    def purge(
        self,
        kind: str,
        type_name: str,
        id: str,
        *,
        confirm: bool = False,
        actor: str | None = None,
    ) -> PurgeReport:
        """Remove a node with its edges, or an edge, from every branch and from all history.

        Every version that held it is rewritten without it.

        Args:
            kind: ``node`` or ``edge``.
            type_name: The type of the entity.
            id: The id of the entity.
            confirm: Remove it; otherwise the report is a dry run.
            actor: The author of the commits that delete it from the heads.

        Returns:
            What was rewritten, or would be, and what no purge can reach.

        Raises:
            EntityNotFound: No version holds the entity.
            PurgeRefused: Something keeps a version that holds it.
            ReadOnly: ``confirm`` on a read-only handle.

        Example:
            >>> graph.maintenance.purge("node", "Person", "bo").branches
            ['dev', 'main']
        """
        return self._backend.purge(
            arguments.text("kind", kind),
            arguments.text("type_name", type_name),
            arguments.text("id", id),
            confirm=arguments.truth("confirm", confirm),
            actor=arguments.optional_text("actor", actor),
        )

    def hold(self, target: str = "main") -> AbstractContextManager[SnapshotPins]:
        """Keep a state readable while a ``with`` block runs, by a lease that cleanups respect.

        A reader needs it only for longer than the setting ``reader_grace_s`` after a newer commit,
        and only if a cleanup runs meanwhile.

        Args:
            target: A branch, a tag, a commit or a time.

        Returns:
            A context manager that gives the snapshot.

        Raises:
            NotFound: ``target`` names nothing.
            ReadOnly: The handle is read-only.

        Example:
            >>> with graph.maintenance.hold("v1") as snapshot:
            ...     snapshot.branch.name
            'main'
        """
        return self._backend.hold(arguments.text("target", target))

    def repair(
        self,
        branch: str = "main",
        *,
        confirm: bool = False,
        force: bool = False,
        restore: bool = False,
        actor: str | None = None,
    ) -> list[Repaired]:
        """Find types whose tables another program has changed, and repair them.

        Args:
            branch: The branch.
            confirm: Adopt changes that changed no row, such as a compaction.
            force: With ``confirm``: adopt other changes, too, as a commit.
            restore: With ``confirm``: restore the published rows instead.
            actor: The author of the commit.

        Returns:
            What was found, and what was done, per type.

        Raises:
            BranchNotFound: There is no such branch.
            ReadOnly: ``confirm`` on a read-only handle.

        Example:
            >>> {report.classification for report in graph.maintenance.repair()}
            {'no_drift'}
        """
        return self._backend.repair(
            arguments.text("branch", branch),
            confirm=arguments.truth("confirm", confirm),
            force=arguments.truth("force", force),
            restore=arguments.truth("restore", restore),
            actor=arguments.optional_text("actor", actor),
        )

    def recover(self, *, set_aside: bool = False) -> RecoveryReport:
        """Finish or undo the writes of dead processes, on every branch.

        Args:
            set_aside: Also undo writes whose records cannot be read, and keep those files.

        Returns:
            What was resolved, and what could not be.

        Raises:
            ReadOnly: The handle is read-only.

        Example:
            >>> graph.maintenance.recover().resolved
            []
        """
        return self._backend.recover(set_aside=arguments.truth("set_aside", set_aside))

    def pending_writes(self) -> list[PendingWrite]:
        """Writes in flight and writes of dead processes, with what will happen to them.

        Returns:
            One entry per write.

        Example:
            >>> graph.maintenance.pending_writes()
            []
        """
        return self._backend.pending_writes()

    def recoveries(self) -> list[dict[str, Any]]:
        """Every finished recovery, newest first.

        Returns:
            One record per recovery.

        Example:
            >>> graph.maintenance.recoveries()
            []
        """
        return self._backend.recoveries()

    def backup(self, target: str | os.PathLike[str]) -> CopyReport:
        """Create a backup at an empty location, or update one by copying new files.

        A backup is a graph with all branches and their history.

        Args:
            target: A local path, a ``file://`` or an ``s3://`` URI.

        Returns:
            What was copied.

        Raises:
            BackupRefused: The location is not empty and not a backup of this graph.

        Example:
            >>> graph.maintenance.backup("people-backup").branches
            2
        """
        return self._backend.backup(arguments.path("target", target))

    def clone(self, target: str | os.PathLike[str]) -> CopyReport:
        """Copy this graph, or this backup, to an empty location, as an independent graph.

        Args:
            target: A local path, a ``file://`` or an ``s3://`` URI.

        Returns:
            What was copied.

        Raises:
            BackupRefused: The location is not empty.

        Example:
            >>> graph.maintenance.clone("people-copy").branches
            2
        """
        return self._backend.clone(arguments.path("target", target))
