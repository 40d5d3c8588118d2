"""Bulk work that runs on Spark when it is large: analyses, embeddings, exports, streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, cast

from omnigraph.bulk.assign import PropertyAssignment
from omnigraph.bulk.export import export_to
from omnigraph.bulk.load.driver import BulkLoad
from omnigraph.bulk.tasks import InProcessTasks, Tasks, ThreadTasks
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.embed.configured import configured_provider
from omnigraph.errors import InvalidInput
from omnigraph.history.log import log
from omnigraph.ingest.load import LoadMode, LoadResult, LoadSpec, Progress
from omnigraph.local.context import GraphContext, write_options
from omnigraph.local.writes import LocalWrites
from omnigraph.model.requests import (
    AnalysisRequest,
    CommitFilter,
    CommitOptions,
    EmbedRequest,
    ExportRequest,
    LoadRequest,
    StateRef,
    StreamRequest,
)
from omnigraph.snapshots.entity_delta import State
from omnigraph.spark import engine_choice
from omnigraph.spark.analytics.analysis import Analysis
from omnigraph.spark.analytics.run import AlgorithmRequest, analyze
from omnigraph.spark.embedding.backfill import Backfill, EmbedOptions, EmbedResult, is_small
from omnigraph.spark.embedding.targets import KIND, TARGETS
from omnigraph.spark.session.spark_session import at_hand, is_on_this_machine
from omnigraph.spark.streaming import stream_writer
from omnigraph.storage.locations import parse_location


class LocalBulk:
    """The methods of ``graph.spark``."""

    def __init__(self, context: GraphContext, writes: LocalWrites) -> None:
        self._context = context
        self._repository = context.repository
        self._reader = context.reader
        self._writes = writes

    def analyze(
        self,
        request: AnalysisRequest,
        state: StateRef,
        progress: Callable[[Progress], None] | None,
    ) -> Analysis:
        snapshot = self._reader.pin(state.branch, state.at)
        write_to = None if state.at is not None else state.branch or MAIN

        def writing(tasks: Tasks) -> Any:
            def write(assignment: PropertyAssignment, chosen: Mapping[str, Any]) -> Commit | None:
                given = dict(chosen)
                columns = given.pop("columns")
                commit = CommitOptions(**given)
                return self.assign(tasks, assignment, write_to, "analyze", columns, commit)

            return write

        return analyze(
            lambda: engine_choice.start_tasks(self._repository, progress),
            is_on_this_machine,
            self._repository,
            snapshot,
            self._reader.schema(snapshot),
            AlgorithmRequest(request.algorithm, request.nodes, request.edges, request.settings),
            writing,
        )

    def embed(
        self,
        request: EmbedRequest,
        commit: CommitOptions,
        progress: Callable[[Progress], None] | None,
    ) -> EmbedResult:
        branch = request.branch
        with self._context.writing():
            options = EmbedOptions(
                request.types,
                request.reembed_all,
                request.commit_every,
                request.batch,
                request.rate,
            )
            # Entered before the schema is read: a pending schema change may be rolled forward.
            self._context.transaction.enter(self._repository.branch(branch))
            snapshot = self._reader.pin(branch)
            run = Backfill(
                self._reader,
                State(snapshot, self._reader.schema(snapshot)),
                branch,
                options,
                configured_provider(self._repository.settings.embed),
                lambda name: self._last_run(branch, name),
            )
            units, stale = run.find()
            tasks: Tasks = (
                InProcessTasks()
                if is_small(units)
                else engine_choice.start_tasks(self._repository, progress)
            )

            def assign(
                assignment: PropertyAssignment, metadata: Mapping[str, str]
            ) -> Commit | None:
                described = replace(commit, metadata=metadata)
                return self.assign(tasks, assignment, branch, KIND, {}, described)

            return run.run(units, stale, tasks, assign)

    def export(self, request: ExportRequest) -> dict[str, int]:
        snapshot = self._reader.pin(request.state.branch, request.state.at)
        settings = self._repository.settings
        found = at_hand(settings)
        tasks: Tasks = ThreadTasks()
        if found is not None and found.is_cluster and not parse_location(request.target).is_local:
            tasks = engine_choice.start_tasks(self._repository)
        with self._context.checking_deletion(snapshot.branch):
            return export_to(
                tasks,
                self._repository,
                snapshot,
                self._reader.schema(snapshot),
                request.target,
                format=request.format,
                types=request.types,
            )

    def stream(
        self,
        frame: Any,
        split: str | Callable[[Any], Mapping[str, Any]],
        request: StreamRequest,
        commit: CommitOptions,
    ) -> Any:
        self._context.transaction.require_writable()

        def load(rows: Any, *, mode: str, idempotency_key: str) -> LoadResult:
            described = replace(commit, idempotency_key=idempotency_key)
            batch = LoadRequest(rows, mode, request.branch, columns=request.columns)
            return self._writes.load(batch, described)

        return stream_writer(
            load,
            frame,
            split,
            mode=cast("LoadMode", request.mode),
            query=request.query,
            checkpoint=request.checkpoint,
        )

    def _last_run(self, branch: str, target: str) -> Commit | None:
        """The newest commit of an embedding run that covered a property."""

        def is_run(commit: Commit) -> bool:
            return commit.kind == KIND and target in commit.metadata.get(TARGETS, "").split(",")

        with self._context.reading(branch) as found:
            state = self._repository.manifest(found).current()
            return next((commit for commit in log(state, CommitFilter()) if is_run(commit)), None)

    def assign(
        self,
        tasks: Tasks,
        assignment: PropertyAssignment,
        branch: str | None,
        kind: str,
        columns: Mapping[str, str],
        commit: CommitOptions,
    ) -> Commit | None:
        """Set properties of nodes that exist, as one commit."""
        with self._context.writing():
            if branch is None:
                raise InvalidInput(
                    "the result of an analysis of an older state cannot be written back",
                    remedy="Analyse a branch, or create a branch at this commit.",
                )
            committer = self._context.committer()
            load = BulkLoad(
                LoadSpec({}, "merge", columns=columns),
                committer.begin(branch),
                self._context.blobs,
                tasks,
                assignment=assignment,
            )
            with closing(load):
                options = write_options(kind, branch, commit)
                return load.read().commit(committer, options).commit
