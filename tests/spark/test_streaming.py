"""Structured Streaming into a graph is exactly once, also when the job is killed repeatedly."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.random_loads import SCHEMA

import omnigraph
from omnigraph.errors import InvalidInput
from omnigraph.storage.failpoints import ENVIRONMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("OMNIGRAPH_TEST_STREAM_KILLS", "20"))
POINTS = (
    "stage.after_intent",
    "stage.after_files",
    "record.after_put",
    "table.after_commit",
    "publish.before_commit",
    "publish.after_commit",
    "record.after_delete",
    "stage.after_clear",
)


def _texts(uri: Path) -> list[str]:
    lines = b"".join(omnigraph.open(uri).export()).splitlines()
    return sorted(json.loads(line)["data"]["text"] for line in lines)


def _write_files(folder: Path, count: int) -> list[str]:
    folder.mkdir()
    expected = []
    for number in range(count):
        texts = [f"t{number}-{n}" for n in range(10)]
        body = "\n".join(json.dumps({"text": text}) for text in texts)
        (folder / f"{number:03d}.json").write_text(body)
        expected += texts
    return sorted(expected)


def test_every_micro_batch_is_one_commit(tmp_path: Path, spark: SparkSession) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    expected = _write_files(tmp_path / "in", 3)
    commits = len(graph.history.commits())
    for _ in range(2):  # a second run from the checkpoint finds nothing new
        frame = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1)
        writer = graph.spark.stream(
            frame.json(str(tmp_path / "in")),
            lambda batch: {"Note": batch},
            mode="append",
            query="notes",
            checkpoint=tmp_path / "checkpoint",
        )
        writer.trigger(availableNow=True).start().awaitTermination()
    assert _texts(tmp_path / "g") == expected
    assert len(graph.history.commits()) == commits + 3
    with pytest.raises(InvalidInput, match="mode overwrite"):
        graph.spark.stream(frame, "Note", mode="overwrite", query="q", checkpoint=tmp_path / "c")


@pytest.mark.crash
def test_a_stream_that_is_killed_again_and_again_writes_every_row_once(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", SCHEMA)
    expected = _write_files(tmp_path / "in", 6)
    chance, killed = random.Random(5), 0
    while killed < KILLS:
        point = f"{chance.choice(POINTS)}@{chance.randint(1, 2)}=kill"
        ended = _job(tmp_path, **{ENVIRONMENT: point})
        assert ended in (0, -9)
        killed += ended == -9
        if ended == 0:
            _write_more(tmp_path / "in", expected, killed)  # all was read: give it more to do
    assert _job(tmp_path) == 0
    assert _texts(tmp_path / "g") == sorted(expected)


def _write_more(folder: Path, expected: list[str], number: int) -> None:
    for n in range(3):
        text = f"more{number}-{n}-{len(expected)}"
        (folder / f"{text}.json").write_text(json.dumps({"text": text}))
        expected.append(text)


def _job(place: Path, **environ: str) -> int:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-m", "tests.spark.streaming_job", "g", "in", "checkpoint"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path, **environ},
        stderr=subprocess.DEVNULL,
    ).returncode
