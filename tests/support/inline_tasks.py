"""Bulk loads and merges whose tasks run in the calling process, one after the other.

The same tasks, pickled and unpickled as Spark would, without a Java machine: for tests that need
many loads, or a process that dies at a named place.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from omnigraph import Graph
from omnigraph.bulk.load.driver import BulkLoad, Sizes
from omnigraph.bulk.quarantine import QuarantiningLoad
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.repository import Repository
from omnigraph.ingest.load import LoadSpec
from omnigraph.local.backend import LocalBackend
from omnigraph.local.merges import LocalMerges
from omnigraph.local.writes import LocalWrites
from omnigraph.merge.engine import ChooseEngine
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt
from omnigraph.spark.merge import SparkMerge
from tests.support.internals import context_of

Spec = TypeVar("Spec")
Result = TypeVar("Answer")

SMALL = Sizes(part_bytes=200, buckets=3)
"""Divides even the input of a test into several parts and buckets."""


MERGE_ROWS: Final = 2
"""Entities per task of a merge: several tasks even in a test."""


class InlineTasks:
    """Carries tasks out in this process."""

    parallelism = 2

    def within(self, scratch: Scratch) -> InlineTasks:
        return self

    def run(
        self,
        name: str,
        function: Callable[[Spec], Result],
        specs: Sequence[Spec],
        *,
        light: bool = False,
    ) -> list[Result]:
        return [self._one(function, spec) for spec in specs]

    def _one(self, function: Callable[[Any], Any], spec: Any) -> Any:
        function, spec = pickle.loads(pickle.dumps((function, spec)))
        return pickle.loads(pickle.dumps(function(spec)))


def bulk_graph(graph: Graph, tasks: Tasks | None = None, sizes: Sizes = SMALL) -> Graph:
    """A handle whose loads and merges all run in bulk, on given tasks and in given sizes."""
    backend = LocalBackend(context_of(graph))
    tasks = tasks or InlineTasks()

    def open_load(
        engine: str | None,
        spec: LoadSpec,
        start: Attempt,
        blobs: BlobPolicy,
        *,
        for_new_branch: bool,
    ) -> Any:
        opened = partial(
            BulkLoad, spec, start, blobs, tasks, for_new_branch=for_new_branch, sizes=sizes
        )
        if spec.quarantine is None:
            return opened()
        return QuarantiningLoad(opened, start, spec.quarantine)

    backend.writes = LocalWrites(backend.context, open_load)
    backend.merges = LocalMerges(backend.context, backend.branches, bulk_merge_engine(tasks))
    return Graph(backend)


def bulk_merge_engine(tasks: Tasks) -> Callable[[Repository, str | None], ChooseEngine]:
    """Merges on given tasks, whatever their size."""
    return lambda repository, _: lambda _: SparkMerge(repository, tasks, rows_per_task=MERGE_ROWS)
