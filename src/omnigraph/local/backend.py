"""The local backend: a graph whose storage this process reads and writes itself.

Implements ``omnigraph.graph.backend.Backend``: opens and creates graphs and builds the services,
which implement the methods of the handle.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from omnigraph.catalog.create import create_graph
from omnigraph.catalog.migrations.upgrade import UpgradeReport
from omnigraph.catalog.original.layout import read_only as original_is_read_only
from omnigraph.catalog.repository import Repository
from omnigraph.errors import StorageFailure
from omnigraph.lang.schema import accept_schema
from omnigraph.local.branches import LocalBranches, LocalTags
from omnigraph.local.bulk import LocalBulk
from omnigraph.local.context import GraphContext
from omnigraph.local.history import LocalHistory
from omnigraph.local.maintenance import LocalMaintenance, recover
from omnigraph.local.merges import LocalMerges
from omnigraph.local.reads import LocalReads
from omnigraph.local.schemas import LocalSchemas
from omnigraph.local.writes import LocalWrites
from omnigraph.maintenance.original.convert import remove_leftovers
from omnigraph.maintenance.original.upgrade import convert_original
from omnigraph.model.ids import new_ulid
from omnigraph.model.outcome import noting_outcome, works_in_steps
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.settings import Settings
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.recovery.graph_recovery import RecoveryReport

# Without a handler of the program, log messages of a library must not be printed.
logging.getLogger("omnigraph").addHandler(logging.NullHandler())


class LocalBackend:
    """One open graph, and one service per capability. Threads share it; it can be pickled."""

    def __init__(
        self, context: GraphContext, recovered_at_open: RecoveryReport | None = None
    ) -> None:
        self.context = context
        self.reads = LocalReads(context)
        self.writes = LocalWrites(context)
        self.branches = LocalBranches(context)
        self.tags = LocalTags(context)
        self.merges = LocalMerges(context, self.branches)
        self.schemas = LocalSchemas(context)
        self.history = LocalHistory(context)
        self.maintenance = LocalMaintenance(
            context, recovered_at_open or RecoveryReport([], [], [])
        )
        self.bulk = LocalBulk(context, self.writes)

    @classmethod
    def create(
        cls, uri: str, schema: str, *, actor: str | None, settings: Settings
    ) -> LocalBackend:
        """Create a graph and open it; ``actor`` is recorded for its first commit only."""
        with noting_outcome():
            location = parse_location(uri)
            accepted = accept_schema(schema, mint=new_ulid)
            author = settings.actor if actor is None else actor
            made = create_graph(location, accepted, actor=author, settings=settings)
            blobs = BlobPolicy(storage=settings.storage)
            return cls(GraphContext.of(made, read_only=False, blobs=blobs, actor=settings.actor))

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        read_only: bool,
        blob_bases: Sequence[str],
        actor: str | None,
        settings: Settings,
    ) -> LocalBackend:
        """Open a graph; for writing, migrate its format and resolve unfinished writes first."""
        blobs = BlobPolicy(tuple(blob_bases), storage=settings.storage)
        by = settings.actor if actor is None else actor
        repository = Repository.open(parse_location(uri), settings=settings)
        context = GraphContext.of(repository, read_only=read_only, blobs=blobs, actor=by)
        recovered = None
        if not read_only:
            if repository.main.warm().is_original:
                raise original_is_read_only(repository.location.uri)
            with suppress(StorageFailure):  # without permission, the first write is refused
                repository.objects.ensure_writable()
            repository.main.migrate()
            recovered = recover(context)
        context.reader.warm_up()
        return cls(context, recovered)

    @classmethod
    def upgrade_at(cls, uri: str, *, apply: bool, settings: Settings) -> UpgradeReport:
        """Show the steps to the current format, or take them; also of a graph of the original."""
        location = parse_location(uri)
        repository = Repository(location, settings=settings)
        if apply and repository.is_original():
            with noting_outcome():
                works_in_steps()
                return convert_original(repository)
        view = cls.open(uri, read_only=True, blob_bases=(), actor=None, settings=settings)
        report = view.maintenance.upgrade(apply=False)
        if apply:
            writer = cls.open(uri, read_only=False, blob_bases=(), actor=None, settings=settings)
            writer.maintenance.upgrade(apply=True)
            remove_leftovers(writer.context.repository)
        return replace(report, applied=apply)

    @property
    def uri(self) -> str:
        return self.context.repository.location.uri

    def __reduce__(self) -> tuple[Any, ...]:
        context = self.context
        return _reopen, (
            self.uri,
            context.read_only,
            context.blobs,
            context.actor,
            context.repository.settings,
        )


def _reopen(
    uri: str, read_only: bool, blobs: BlobPolicy, actor: str | None, settings: Settings
) -> LocalBackend:
    """Open what was pickled, without migrating or recovering again."""
    repository = Repository.open(parse_location(uri), settings=settings)
    return LocalBackend(GraphContext.of(repository, read_only=read_only, blobs=blobs, actor=actor))
