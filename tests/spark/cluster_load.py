"""A driver process: loads a file on a cluster and prints the outcome as one line of JSON.

python -m tests.spark.cluster_load MASTER GRAPH FILE
"""

from __future__ import annotations

import json
import os
import sys

from tests.support.inline_tasks import bulk_graph

import omnigraph
from omnigraph.bulk.load.driver import Sizes
from omnigraph.errors import OmnigraphError
from omnigraph.settings import Settings
from omnigraph.spark.session.spark_session import session, stop
from omnigraph.spark.tasks import SparkTasks
from omnigraph.storage.failpoints import ENVIRONMENT

CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def main(master: str, uri: str, file: str) -> None:
    armed = os.environ.get(ENVIRONMENT, "")
    conf = {**CONF, f"spark.executorEnv.{ENVIRONMENT}": armed}
    stall_s = Settings.from_environment().spark.stall_s
    tasks = SparkTasks(session(master, conf), stall_s)
    graph = bulk_graph(omnigraph.open(uri), tasks, Sizes(part_bytes=4_000, buckets=2))
    try:
        print(json.dumps(graph.load(file, mode="append").to_json()))
    except OmnigraphError as error:
        print(json.dumps(error.to_json()))
    stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
