"""The writing half of a graph handle: every way to change a graph, as methods.

Each makes one commit or none. All of them take a message, an actor and metadata for the commit, an
expected head (the write fails if the branch is elsewhere) and an idempotency key (a repeated
request returns the first one's commit).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from omnigraph.catalog.branches.changes import create_branch
from omnigraph.catalog.branches.registry import all_branches
from omnigraph.catalog.commit_text import checked_metadata
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN
from omnigraph.errors import OmnigraphError
from omnigraph.ingest.load import Load, LoadResult, LoadSource, LoadSpec, Mode, OneLoad, Progress
from omnigraph.ingest.sources import Format
from omnigraph.maintenance.upkeep import tend
from omnigraph.model.outcome import told
from omnigraph.mutation.batch import Batch
from omnigraph.mutation.mutation import Mutation, MutationResult, MutationSpec
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

log = logging.getLogger("omnigraph.upkeep")


class Forgetting:
    """What methods ask of a handle after they removed something for good."""

    def _forget_what_was_read(self) -> None:
        """Let go of what was read of old states; ``Graph`` knows what that is."""
        raise NotImplementedError


class WriteMethods(Forgetting):
    """Mixed into ``Graph``."""

    _repository: Repository
    _transaction: WriteTransaction
    _blobs: BlobPolicy

    @contextmanager
    def write(
        self,
        branch: str = MAIN,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> Iterator[Batch]:
        """Collect changes in a ``with`` block; they become one commit when it ends."""
        self._transaction.require_writable()
        info = WriteInfo("write", actor, message, checked_metadata(metadata))
        options = WriteOptions(branch, info, expected_head, idempotency_key)
        with told():
            batch = Batch(self._committer(), options, self._blobs)
            yield batch
            if batch.commit() is not None:
                self._tend(branch, batch.rows_written)

    @told()
    def load(
        self,
        source: LoadSource,
        *,
        mode: Mode,
        branch: str = MAIN,
        from_: str | None = None,
        type: str | None = None,
        columns: Mapping[str, str] | None = None,
        format: Format | None = None,
        strict: bool = True,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        progress: Callable[[Progress], None] | None = None,
        upkeep: bool = True,
        engine: str | None = None,
        quarantine: str | os.PathLike[str] | None = None,
    ) -> LoadResult:
        """Load records as one commit, or none where an upsert changes nothing.

        ``mode`` is ``append`` (only new entities), ``upsert`` (set what is given, keep the rest; an
        edge without id is the one with the same ends and equal properties), ``merge`` (replace
        whole entities by id; an edge without id is always a new one) or ``overwrite`` (replace
        every type that occurs in the input).

        ``source`` is a path, directory, glob or URI (NDJSON, Parquet or CSV, also compressed),
        bytes, a table (Arrow, pandas, polars, or whatever else hands over Arrow columns), an
        iterable of records, or a mapping of type names to any of these.
        Tables need ``type`` and may rename ``columns``. With ``from_`` a missing branch is created
        from that one. ``upkeep=False`` leaves compaction and indexes to a later write. ``engine``
        is ``auto`` (small input in process, large input and DataFrames on Spark), ``spark`` or
        ``local``. Raises one error that lists everything wrong with the input; with ``quarantine``
        (a new file, on Spark) bad records are written there with what is wrong with them, and the
        others are loaded.
        """
        self._transaction.require_writable()
        aside = None if quarantine is None else os.fspath(quarantine)
        spec = LoadSpec(source, mode, type, columns, format, strict, progress, aside)
        missing = branch not in all_branches(self._repository.main.current())
        create_from = from_ if missing else None
        committer = self._committer()
        start = committer.begin(branch if create_from is None else create_from)
        load = self._open_load(spec, start, engine, create_from is not None)
        with closing(load):
            load.read()
            if create_from is not None:
                load.check(start, expected_head)  # a load that fails leaves no branch behind
                by = self._transaction.acting(actor)
                create_branch(self._repository, branch, create_from, by)
            info = WriteInfo("load", actor, message, checked_metadata(metadata))
            options = WriteOptions(branch, info, expected_head, idempotency_key)
            result = load.commit(committer, options)
        if upkeep and not result.repeated:
            self._tend(branch, load.rows_written)
        return replace(result, base_branch=from_, branch_created=create_from is not None)

    @told()
    def mutate(
        self,
        query: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        branch: str = MAIN,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a write query as one commit. A query that changes nothing makes none.

        ``name`` picks one query of a text that holds several. With ``expected_head`` the call fails
        with ``PreconditionFailed`` when the branch is elsewhere, also when nothing would change.
        """
        self._transaction.require_writable()
        mutation = Mutation(MutationSpec(query, name, params), self._blobs, self._repository.clock)
        info = WriteInfo("mutation", actor, message, checked_metadata(metadata))
        options = WriteOptions(branch, info, expected_head, idempotency_key)
        result = mutation.commit(self._committer(), options)
        if result.commit is not None and not result.repeated:
            self._tend(branch, mutation.rows_written)
        return result

    def _open_load(
        self, spec: LoadSpec, start: Attempt, engine: str | None, for_new_branch: bool
    ) -> OneLoad:
        """The load that this engine carries out; ``Graph`` knows the other engines."""
        return Load(spec, start, self._blobs)

    def _committer(self) -> Committer:
        return Committer(self._repository, self._transaction)

    def _tend(self, branch: str, rows_written: Mapping[str, int]) -> None:
        """Light upkeep after a write, which has landed whatever becomes of this."""
        try:
            found = self._repository.branch(branch)
        except OmnigraphError as error:
            log.info("upkeep of %s was put off: %s", branch, error.message)
            return
        tend(self._repository, self._transaction, found, rows_written)
