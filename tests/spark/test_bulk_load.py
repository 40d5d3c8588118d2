"""The bulk load without Java: tasks run in this process, with the smallest partitions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.spark.outcomes import outcome, two_graphs
from tests.spark.random_loads import random_load
from tests.support.inline_tasks import bulk_graph

SEEDS = range(int(os.environ.get("OMNIGRAPH_TEST_BULK_LOADS", "60")))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_load_does_the_same_in_process_and_in_bulk(
    seed: int, empty: Path, tmp_path: Path
) -> None:
    load = random_load(seed)
    local, other = two_graphs(empty, tmp_path, load.stored)
    expected = outcome(local, load.data, mode=load.mode, engine="local")
    assert outcome(bulk_graph(other), load.data, mode=load.mode) == expected
