"""The bulk load without Java, with the smallest partitions: tasks one after the other, and on
threads. Results, errors and the order of errors are those of a load that is read at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.spark.outcomes import copied, outcome, two_graphs
from tests.spark.random_loads import random_load
from tests.support.inline_tasks import bulk_graph

from omnigraph.bulk.tasks import ThreadTasks

SEEDS = range(int(os.environ.get("OMNIGRAPH_TEST_BULK_LOADS", "45")))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_load_does_the_same_in_process_and_in_bulk(
    seed: int, empty: Path, tmp_path: Path
) -> None:
    load = random_load(seed)
    local, other = two_graphs(empty, tmp_path, load.stored)
    expected = outcome(local, load.data, mode=load.mode, engine="local")
    threads = copied(other, tmp_path / "threads")
    assert outcome(bulk_graph(other), load.data, mode=load.mode) == expected
    on_threads = bulk_graph(threads, ThreadTasks(parallelism=3))
    assert outcome(on_threads, load.data, mode=load.mode) == expected
