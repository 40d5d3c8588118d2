"""Checking the executors of a cluster before the first job: what is missing, and what to do.

Without it a job fails after several attempts with the last line of a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.errors import OmnigraphError, SparkUnavailable
from omnigraph.spark.session import executor_probe

TASKS_MAX: Final = 64
"""Probes at most: one per core of a small cluster, a sample of a large one."""


def probe_executors(context: Any, parallelism: int) -> list[dict[str, str]]:
    """What some executors have installed, each host once."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
    try:
        count = max(1, min(parallelism, TASKS_MAX))
        found = context.parallelize(range(count), count).map(executor_probe.probe).collect()
    finally:
        cloudpickle.unregister_pickle_by_value(executor_probe)  # type: ignore[no-untyped-call]
    return list({item["host"]: item for item in found}.values())


def require_packages(executors: Sequence[dict[str, str]]) -> None:
    """Raise ``SparkUnavailable`` with the remedy if an executor lacks a package, or has another
    version of the table format's library than the driver."""
    own = executor_probe.probe(0)
    for found in executors:
        where = f"the executors on {found['host']}"
        missing = [name for name in executor_probe.MODULES if name not in found]
        if missing == ["omnigraph"]:
            raise SparkUnavailable(
                f"{where} do not have the package omnigraph",
                remedy="Run `omnigraph spark package omnigraph.zip` and set "
                "OMNIGRAPH_SPARK_PACKAGE=omnigraph.zip, or install it in their Python.",
            )
        if missing:
            raise SparkUnavailable(
                f"{where} do not have {', '.join(missing)} (Python {found['python']})",
                remedy="Install omnigraph with its dependencies in the Python of the executors "
                "(PYSPARK_PYTHON), or ship an environment with spark.archives.",
            )
        if found["pylance"] != own["pylance"]:
            raise SparkUnavailable(
                f"{where} have pylance {found['pylance']}, the driver has {own['pylance']}",
                remedy=f"Install pylance=={own['pylance']} in the Python of the executors.",
            )


def require_storage(graph: GraphStorage, answers: Sequence[str | None]) -> None:
    """Raise ``SparkUnavailable`` if an executor could not read the graph."""
    wrong = [answer for answer in answers if answer is not None]
    if wrong:
        raise SparkUnavailable(
            f"the executors cannot read the graph at {graph.uri}: {wrong[0]}",
            remedy="Keep the graph in an object store or on a file system that all machines share.",
        )


def read_graph(graph: GraphStorage, _: int) -> str | None:
    """Why this process cannot read a graph; None when it can (task)."""
    try:
        return None if graph.objects().list("__manifest") else "there is nothing"
    except OmnigraphError as error:
        return error.message
