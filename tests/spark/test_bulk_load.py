"""The bulk load without Java: its tasks run in this process, divided as finely as can be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.spark.compare import outcome, two_graphs
from tests.spark.inputs import random_load
from tests.support.inline_tasks import BulkGraph

SEEDS = range(int(os.environ.get("OMNIGRAPH_TEST_BULK_LOADS", "60")))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_load_does_the_same_in_process_and_in_bulk(
    seed: int, empty: Path, tmp_path: Path
) -> None:
    load = random_load(seed)
    local, other = two_graphs(empty, tmp_path, load.stored)
    expected = outcome(local, load.data, mode=load.mode, engine="local")
    assert outcome(BulkGraph.of(other), load.data, mode=load.mode) == expected
