"""Bulk loads and merges whose tasks run in the calling process, one after the other.

The same tasks, pickled and unpickled as Spark would, without a Java machine: for tests that need
many loads, or a process that dies at a named place.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from omnigraph.graph.handle import Graph
from omnigraph.ingest.load import LoadSpec
from omnigraph.merge.engine import ChooseEngine
from omnigraph.prepare.committer import Attempt
from omnigraph.spark.load.driver import Sizes, SparkLoad
from omnigraph.spark.merge import SparkMerge
from omnigraph.spark.quarantine import QuarantiningLoad
from omnigraph.spark.tasks import Tasks

Spec = TypeVar("Spec")
Answer = TypeVar("Answer")

SMALL = Sizes(part_bytes=200, buckets=3)
"""Divides even the input of a test into several parts and buckets."""


MERGE_ROWS: Final = 2
"""Entities per task of a merge: several tasks even in a test."""


class InlineTasks:
    """Carries tasks out in this process."""

    parallelism = 2

    def run(
        self,
        name: str,
        function: Callable[[Spec], Answer],
        specs: Sequence[Spec],
        *,
        light: bool = False,
    ) -> list[Answer]:
        return [self._one(function, spec) for spec in specs]

    def _one(self, function: Callable[[Any], Any], spec: Any) -> Any:
        return pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(spec)))))


class BulkGraph(Graph):
    """A graph whose loads and merges all go the bulk way, on given tasks and in given sizes."""

    tasks: Tasks = InlineTasks()
    sizes: Sizes = SMALL

    @classmethod
    def of(cls, graph: Graph, tasks: Tasks | None = None, sizes: Sizes = SMALL) -> BulkGraph:
        found = cls(graph._repository, blobs=graph._blobs)
        found.tasks, found.sizes = tasks or InlineTasks(), sizes
        return found

    def _open_load(
        self, spec: LoadSpec, start: Attempt, engine: str | None, for_new_branch: bool
    ) -> Any:
        opened = partial(
            SparkLoad,
            spec,
            start,
            self._blobs,
            self.tasks,
            for_new_branch=for_new_branch,
            sizes=self.sizes,
        )
        return (
            opened()
            if spec.quarantine is None
            else QuarantiningLoad(opened, start, spec.quarantine)
        )

    def _merge_engine(self, engine: str | None) -> ChooseEngine:
        return lambda _: SparkMerge(self._repository, self.tasks, rows_per_task=MERGE_ROWS)
