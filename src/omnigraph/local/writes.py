"""The write operations: write queries, batches and loads. Each makes at most one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, cast

from omnigraph.catalog.branches.changes import create_branch
from omnigraph.catalog.branches.registry import all_branches
from omnigraph.ingest.load import Load, LoadMode, LoadResult, LoadSpec, Progress
from omnigraph.ingest.sources import LoadFormat
from omnigraph.local.context import GraphContext, write_options
from omnigraph.local.engines import OpenLoad, open_load
from omnigraph.model.requests import CommitOptions, LoadRequest
from omnigraph.mutation.batch import Batch
from omnigraph.mutation.mutation import Mutation, MutationResult, MutationSpec
from omnigraph.prepare.committer import Attempt


class LocalWrites:
    """The write operations of the local backend."""

    def __init__(self, context: GraphContext, open_load: OpenLoad = open_load) -> None:
        self._context = context
        self._open_load = open_load

    @contextmanager
    def write(self, branch: str, commit: CommitOptions) -> Iterator[Batch]:
        with self._context.writing():
            options = write_options("write", branch, commit)
            batch = Batch(self._context.committer(), options, self._context.blobs)
            yield batch
            self._context.run_upkeep(branch, batch.commit().rows_written)

    def mutate(
        self,
        query: str,
        name: str | None,
        params: Mapping[str, Any] | None,
        branch: str,
        commit: CommitOptions,
    ) -> MutationResult:
        context = self._context
        with context.writing():
            spec = MutationSpec(query, name, params)
            mutation = Mutation(spec, context.blobs, context.repository.clock)
            options = write_options("mutation", branch, commit)
            result = mutation.commit(context.committer(), options)
            context.run_upkeep(branch, result.rows_written)
            return result

    def load(
        self,
        request: LoadRequest,
        commit: CommitOptions,
        progress: Callable[[Progress], None] | None = None,
    ) -> LoadResult:
        context, branch = self._context, request.branch
        with context.writing():
            missing = branch not in all_branches(context.repository.main.current())
            create_from = request.from_ if missing else None
            committer = context.committer()
            start = committer.begin(branch if create_from is None else create_from)
            load = self._open(request, start, progress, for_new_branch=create_from is not None)
            with closing(load):
                given = load.read()
                if create_from is not None:
                    # Checked first: a load that fails leaves no branch behind.
                    given.check(start, commit.expected_head)
                    by = context.transaction.actor_of(commit.actor)
                    create_branch(context.repository, branch, create_from, by)
                result = given.commit(committer, write_options("load", branch, commit))
            if request.upkeep:
                context.run_upkeep(branch, result.rows_written)
            return replace(
                result, base_branch=request.from_, branch_created=create_from is not None
            )

    def _open(
        self,
        request: LoadRequest,
        start: Attempt,
        progress: Callable[[Progress], None] | None,
        *,
        for_new_branch: bool,
    ) -> Load:
        spec = LoadSpec(
            request.source,
            cast("LoadMode", request.mode),
            request.type,
            request.columns,
            cast("LoadFormat | None", request.format),
            request.strict,
            progress,
            request.quarantine,
        )
        blobs = self._context.blobs
        return self._open_load(request.engine, spec, start, blobs, for_new_branch=for_new_branch)
