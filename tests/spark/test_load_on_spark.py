"""Loads on a real Spark session: every conformance case, and random loads as in process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.mutation.test_cases import CASES, check_after, load_cases, run_step
from tests.spark.outcomes import outcome, two_graphs
from tests.spark.random_loads import random_load
from tests.support.inline_tasks import bulk_graph
from tests.support.internals import backend_of

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings
from omnigraph.spark.tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SEEDS = range(1000, 1000 + int(os.environ.get("OMNIGRAPH_TEST_SPARK_LOADS", "40")))


class OnSpark(Graph):
    """A graph whose loads run on Spark, except those with ``strict=False``."""

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
    graph = OnSpark(backend_of(omnigraph.open(tmp_path / "g")))
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
    found = bulk_graph(other, SparkTasks(spark, Settings().spark.stall_s))
    assert outcome(found, load.data, mode=load.mode) == expected
