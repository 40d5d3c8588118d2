"""The bulk half of a graph handle that is about computing: analyses and vectors.

Loads, exports and streams on Spark are methods of the writing and reading halves: they are the same
thing at another size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from omnigraph.catalog.commit_text import checked_metadata
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.embed.settings import provider_from
from omnigraph.engine.engine import Reader
from omnigraph.errors import InvalidInput
from omnigraph.graph.looking_back import HistoryMethods
from omnigraph.ingest.load import LoadSpec, Progress
from omnigraph.model.outcome import told
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Committer, WriteOptions
from omnigraph.snapshots.entity_delta import State
from omnigraph.spark import engine as spark_engine
from omnigraph.spark.analytics.analysis import Analysis
from omnigraph.spark.analytics.run import Request, analyze
from omnigraph.spark.assign import Assignment
from omnigraph.spark.embedding.backfill import Backfill, EmbedOptions, EmbedResult, is_small
from omnigraph.spark.embedding.targets import KIND, TARGETS
from omnigraph.spark.load.driver import SparkLoad
from omnigraph.spark.session.spark_session import runs_here
from omnigraph.spark.tasks import InProcess, Tasks
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction


class SparkMethods(HistoryMethods):
    """Mixed into ``Graph``."""

    _repository: Repository
    _transaction: WriteTransaction
    _blobs: BlobPolicy
    _reader: Reader

    def analyze(
        self,
        algorithm: str,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        branch: str | None = None,
        at: str | None = None,
        progress: Callable[[Progress], None] | None = None,
        **settings: Any,
    ) -> Analysis:
        """Run a graph algorithm over a branch, or over the state at a commit, tag or time.

        ``pagerank`` (damping, tolerance, sweeps_max, weight), ``components``, ``communities``
        (sweeps_max), ``triangles``, ``degrees`` or ``distances`` (sources, direction, weight).
        ``edges`` and ``nodes`` name the types to look at; without them all are. Large graphs are
        analysed on Spark. The result has ``frame()``, ``table()``, ``top()`` and ``write()``.
        """
        snapshot = self._reader.pin(branch, at)
        write_to = None if at is not None else branch or MAIN

        def writing(tasks: Tasks) -> Any:
            return lambda assignment, chosen: self._assign(
                tasks, assignment, write_to, "analyze", **chosen
            )

        return analyze(
            lambda: spark_engine.start_tasks(progress),
            runs_here,
            self._repository,
            snapshot,
            self._reader.schema(snapshot),
            Request(algorithm, nodes, edges, settings),
            writing,
        )

    @told()
    def embed(
        self,
        branch: str = MAIN,
        *,
        types: Sequence[str] | None = None,
        reembed_all: bool = False,
        commit_every: int | None = None,
        batch: int = 64,
        rate: float | None = None,
        message: str | None = None,
        actor: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> EmbedResult:
        """Make the vectors of ``@embed`` properties that are missing or whose text has changed.

        The provider is the one that the environment names. All vectors are one commit, or one per
        ``commit_every`` nodes; a run that was interrupted goes on where it was. ``batch`` texts go
        into a request and ``rate`` limits the requests per second. ``reembed_all`` makes all
        vectors anew.
        """
        self._transaction.require_writable()
        options = EmbedOptions(types, reembed_all, commit_every, batch, rate)
        self._transaction.enter(self._repository.branch(branch))  # before the schema is read
        snapshot = self._reader.pin(branch)

        def last_run(name: str) -> Commit | None:
            def is_run(commit: Commit) -> bool:
                return commit.kind == KIND and name in commit.metadata.get(TARGETS, "").split(",")

            return next(iter(self.commits(branch, limit=1, where=is_run)), None)

        run = Backfill(
            self._reader,
            State(snapshot, self._reader.schema(snapshot)),
            branch,
            options,
            provider_from(os.environ),
            last_run,
        )
        units, stale = run.find()
        tasks: Tasks = InProcess() if is_small(units) else spark_engine.start_tasks(progress)

        def commit(assignment: Assignment, metadata: Mapping[str, str]) -> Commit | None:
            return self._assign(
                tasks,
                assignment,
                branch,
                KIND,
                columns={},
                message=message,
                actor=actor,
                metadata=metadata,
            )

        return run.run(units, stale, tasks, commit)

    @told()
    def _assign(
        self,
        tasks: Tasks,
        assignment: Assignment,
        branch: str | None,
        kind: str,
        *,
        columns: Mapping[str, str],
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> Commit | None:
        """Set properties of nodes that exist, as one commit."""
        self._transaction.require_writable()
        if branch is None:
            raise InvalidInput(
                "the past cannot be written to",
                remedy="Analyse a branch, or make one of this commit.",
            )
        committer = Committer(self._repository, self._transaction)
        load = SparkLoad(
            LoadSpec({}, "merge", columns=columns),
            committer.begin(branch),
            self._blobs,
            tasks,
            assignment=assignment,
        )
        info = WriteInfo(kind, actor, message, checked_metadata(metadata))
        options = WriteOptions(branch, info, expected_head, idempotency_key)
        with closing(load):
            load.read()
            return load.commit(committer, options).commit
