"""Loads on a real Spark session: every case of a load, and random loads beside local ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.compare import outcome, two_graphs
from tests.spark.inputs import random_load
from tests.support.inline_tasks import BulkGraph
from tests.write.test_cases import CASES, check_after, load_cases, run_step

import omnigraph
from omnigraph.graph.handle import Graph
from omnigraph.spark.tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SEEDS = range(1000, 1000 + int(os.environ.get("OMNIGRAPH_TEST_SPARK_LOADS", "40")))


class OnSpark(Graph):
    """A graph whose loads run on Spark unless they ask for the compatible reading."""

    def load(self, source: Any, **options: Any) -> Any:
        engine = "spark" if options.get("strict", True) else "local"
        return super().load(source, **options, engine=engine)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One graph per schema of the cases, to be copied."""
    found = {}
    for schema in CASES.glob("*.pg"):
        where = tmp_path_factory.mktemp("templates") / schema.stem
        omnigraph.init(where, schema.read_text()).load(
            schema.with_suffix(".jsonl"), mode="overwrite", engine="local"
        )
        found[schema.stem] = where
    return found


@pytest.mark.parametrize("case", load_cases())
def test_case(
    case: dict[str, Any], templates: dict[str, Path], tmp_path: Path, spark: SparkSession
) -> None:
    shutil.copytree(templates[case["schema"]], tmp_path / "g")
    graph = OnSpark(omnigraph.open(tmp_path / "g")._repository)
    for step in case["step"]:
        run_step(graph, step)
    check_after(graph, case)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_load_does_the_same_in_process_and_on_spark(
    seed: int, empty: Path, tmp_path: Path, spark: SparkSession
) -> None:
    load = random_load(seed)
    local, other = two_graphs(empty, tmp_path, load.stored)
    expected = outcome(local, load.data, mode=load.mode, engine="local")
    found = BulkGraph.of(other, SparkTasks(spark))
    assert outcome(found, load.data, mode=load.mode) == expected
