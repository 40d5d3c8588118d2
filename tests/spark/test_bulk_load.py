"""The bulk load without Java: its tasks run in this process, divided as finely as can be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.compare import outcome
from tests.spark.inputs import SCHEMA, random_load

import omnigraph
from omnigraph.graph import Graph
from omnigraph.testing.inline_tasks import BulkGraph

SEEDS = range(int(os.environ.get("OMNIGRAPH_TEST_LOADS", "150")))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    where = tmp_path_factory.mktemp("empty") / "g"
    omnigraph.init(where, SCHEMA)
    return where


def _pair(empty: Path, tmp_path: Path, stored: bytes) -> tuple[Graph, Graph]:
    first = tmp_path / "local"
    shutil.copytree(empty, first)
    omnigraph.open(first).load(stored, mode="append", engine="local")
    shutil.copytree(first, tmp_path / "bulk")
    return omnigraph.open(first), BulkGraph.of(omnigraph.open(tmp_path / "bulk"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_load_does_the_same_in_process_and_in_bulk(
    seed: int, empty: Path, tmp_path: Path
) -> None:
    load = random_load(seed)
    local, bulk = _pair(empty, tmp_path, load.stored)
    expected = outcome(local, load.data, mode=load.mode, engine="local")
    assert outcome(bulk, load.data, mode=load.mode) == expected
