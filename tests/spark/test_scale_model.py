"""Ten billion edges on a thousand executors, planned by the real driver over synthetic files.

The tasks are not run: each answers with the result that a task of its size has. What is measured is
the driver's memory, what every task is sent, and how many objects and requests there are.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from lance.fragment import FragmentMetadata
from pyspark import cloudpickle
from tests.support.internals import context_of, repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.load import input_parts
from omnigraph.bulk.load.bucket_checks import CheckedBuckets
from omnigraph.bulk.load.driver import BulkLoad
from omnigraph.bulk.load.shuffle import ShuffleFile
from omnigraph.bulk.load.stage import StagedPart, StageTask
from omnigraph.bulk.scratch import Scratch
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.sources import READ_BYTES, SourceFile
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.spark.task_specs import pack
from omnigraph.spark.tasks import _each  # what Spark sends to every task

FILES = 15_000
FILE_BYTES = 48 << 20
EDGES = 10_000_000_000
EXECUTORS = 1_000
OUTPUT_FRAGMENTS = 4_000
CLOSURE_MAX = 64 << 10
DRIVER_BYTES_MAX = 1 << 30
SPEC_GETS = 3  # the function, an index entry and the specification
OBJECTS_PER_READING_TASK = 2  # a data file and an object of the shuffle; tests/bulk counts them
GETS_PER_TB_MAX = 11_000_000
PUTS_PER_TB_MAX = 11_000

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
KNOWS = "edge:Knows"


class ModelTasks:
    """Packs every job as Spark would, and answers for its tasks."""

    parallelism = EXECUTORS

    def __init__(self, fragment: FragmentMetadata) -> None:
        """``fragment``: one of the table, which others are like."""
        self._fragment = fragment.to_json()
        self._scratch: Scratch | None = None
        self.closures: dict[str, int] = {}
        self.tasks: dict[str, int] = {}
        self.gets: dict[str, int] = {}

    def within(self, scratch: Scratch) -> ModelTasks:
        self._scratch = scratch
        return self

    def run(
        self,
        name: str,
        function: Any,
        specs: Sequence[Any],
        *,
        light: bool = False,
    ) -> list[Any]:
        packed = pack(function, specs, self._scratch)
        self.closures[name] = len(cloudpickle.dumps(_each(packed, self._scratch)))
        self.tasks[name] = len(specs)
        if name == "reading":
            reads = math.ceil(FILE_BYTES / READ_BYTES[1]) + int(math.log2(8 << 20 >> 16))
            self.gets[name] = sum(SPEC_GETS + len(spec.parts) * reads for spec in specs)
            return [self._staged(spec) for spec in specs]
        if name == "reading stored keys":
            return [None] * len(specs)
        assert name == "checking constraints"
        files = function.args[0].shuffled.files
        self.gets[name] = len(specs) * (SPEC_GETS + 2 * len(files))
        return [CheckedBuckets() for _ in specs]

    def _staged(self, task: StageTask) -> StagedPart:
        """The result of a task that wrote one data file and one object of the shuffle."""
        rows = EDGES * len(task.parts) // FILES
        first = task.parts[0].number
        body = {**self._fragment, "id": 0, "physical_rows": rows}
        body["files"] = [{**file, "path": f"{first:032d}.lance"} for file in body["files"]]
        return StagedPart(
            first,
            begins_file=True,
            rows={KNOWS: rows},
            given={KNOWS: 0},
            fragments={KNOWS: [FragmentMetadata.from_json(json.dumps(body))]},
            shuffled=[ShuffleFile(f"_staging/op/keys/{first:026d}", 130 << 20)],
        )


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    rows = {"Person": pa.table({"name": ["a"]}), "Knows": pa.table({"from": ["a"], "to": ["a"]})}
    graph.load(rows, mode="append", engine="local")
    return graph


def test_the_driver_of_ten_billion_edges(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b'{"edge":"Knows","from":"a","to":"a"}\n'
    files = [
        SourceFile(
            f"s3://bucket/edges/part-{number:05d}.jsonl",
            lambda: io.BytesIO(head),
            f"s3://bucket/edges/part-{number:05d}.jsonl",
            FILE_BYTES,
        )
        for number in range(FILES)
    ]
    monkeypatch.setattr(input_parts, "find_files", lambda *_: files)
    repository = repository_of(graph)
    table = repository.tables.open(graph.snapshot().pin(KNOWS).ref)
    tasks = ModelTasks(next(iter(table.fragments.values())))
    before = psutil.Process().memory_info().rss
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    committer = context_of(graph).committer()
    spec = LoadSpec("s3://bucket/edges/", "append")
    attempt = committer.begin("main")
    load = BulkLoad(spec, attempt, BlobPolicy(), tasks)
    load.read()
    staging = Path(graph.uri) / "_staging"
    written = [path for path in staging.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert len(written) == 1  # the specifications of the reading tasks
    load.check(attempt)
    load.close()
    assert _peak() - before <= DRIVER_BYTES_MAX

    assert FILES / 4 <= tasks.tasks["reading"] <= OUTPUT_FRAGMENTS
    assert max(tasks.closures.values()) <= CLOSURE_MAX
    terabytes = FILES * FILE_BYTES / 1e12
    assert sum(tasks.gets.values()) / terabytes <= GETS_PER_TB_MAX
    assert tasks.tasks["reading"] * OBJECTS_PER_READING_TASK / terabytes <= PUTS_PER_TB_MAX


def _peak() -> int:
    """The peak of this process's memory in bytes."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10
