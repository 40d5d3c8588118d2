"""Which engine a load is estimated to be done first on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.bulk.estimate import (
    THREADED_BYTES_MIN,
    SparkAtHand,
    cheapest_engine,
    input_bytes,
    runs_as_tasks,
)
from omnigraph.ingest.load import LoadSpec
from omnigraph.settings import StorageSettings

HERE = SparkAtHand(cores=4, start_s=0.0, is_cluster=False)
CLUSTER = SparkAtHand(cores=64, start_s=20.0, is_cluster=True)
GB = 1 << 30


@pytest.mark.parametrize(
    ("size", "spark", "expected"),
    [
        (GB, None, "local"),
        (1000 * GB, HERE, "local"),  # the same cores, and more work on each
        (GB, CLUSTER, "local"),  # done before a session has started
        (100 * GB, CLUSTER, "spark"),
    ],
)
def test_the_engine_that_is_done_first_is_chosen(
    size: int, spark: SparkAtHand | None, expected: str
) -> None:
    assert cheapest_engine(size, 4, spark).engine == expected


def test_the_choice_says_why() -> None:
    assert str(cheapest_engine(100 * GB, 4, CLUSTER)) == (
        "engine spark: 102400 MiB take about 640 s on 4 cores here, 120 s on the cluster"
    )
    assert str(cheapest_engine(1 << 20, 4, None)) == (
        "engine local: 1 MiB take about less than a second on 4 cores here; Spark is not installed"
    )


def test_the_size_of_files_bytes_and_tables_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"x" * 10)
    (tmp_path / "b.jsonl.gz").write_bytes(b"x" * 10)
    source = {"A": tmp_path, "B": b"12345", "C": pa.table({"n": pa.array([1], pa.int64())})}
    assert input_bytes(source, StorageSettings()) == 10 + 60 + 5 + 8
    assert input_bytes([{"type": "A"}], StorageSettings()) == 0


def test_large_divisible_input_is_loaded_as_tasks() -> None:
    large = THREADED_BYTES_MIN
    assert runs_as_tasks(LoadSpec("a.jsonl", "append"), large)
    assert not runs_as_tasks(LoadSpec("a.jsonl", "append"), large - 1)
    assert not runs_as_tasks(LoadSpec("a.jsonl", "append", strict=False), large)
    assert not runs_as_tasks(LoadSpec([{}], "append"), large)
    assert runs_as_tasks(LoadSpec("a.jsonl", "append", quarantine="bad.jsonl"), 0)
