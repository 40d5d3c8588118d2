"""A program that works over Spark Connect: ``python -m tests.spark.connect_job PLACE URL``.

It runs in its own process: PySpark does not allow both kinds of session in one process.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.spark.guide_examples import SCHEMA

import omnigraph
from omnigraph.errors import ConstraintViolation, NotAvailable, SparkFailure
from omnigraph.spark.analytics import network
from omnigraph.spark.session.spark_session import session
from omnigraph.spark.source.data_source import register


def main(place: Path, url: str) -> None:
    os.environ["SPARK_REMOTE"] = url
    spark, said = session(), {}
    graph = omnigraph.init(place / "other", SCHEMA)
    graph.load([_person("a", 1), _person("c", 1)], mode="append")
    before = graph.snapshot().commit_id
    graph.mutate('query q() { delete Person where name = "a" }')
    steps: list[str] = []
    people = spark.createDataFrame([("b", 1), ("c", 2)], "name string, age int")
    graph.load({"Person": people}, mode="merge", progress=lambda step: steps.append(step.phase))
    said["steps"] = "reading Person" in steps
    register(spark)
    reader = spark.read.format("omnigraph").option("type", "Person").option("changes", before)
    said["frame"] = sorted([r["op"], r["id"]] for r in reader.load(graph.uri).collect())
    more = spark.range(2).selectExpr("concat('d', id) as name")
    graph.load({"Person": more}, mode="append")
    network.NODES_PER_BLOCK = 2
    with graph.spark.analyze("components", at=graph.snapshot().commit_id) as found:
        frame = found.frame(spark)
    said["components"] = frame.where("id <> 'b'").select("component").distinct().count()
    said["exported"] = graph.spark.export(place / "exported")
    try:
        graph.load({"Person": spark.range(1).selectExpr("raise_error('x') as name")}, mode="append")
    except SparkFailure as failure:
        said["failure"] = (
            failure.code if "USER_RAISED_EXCEPTION" in failure.message else str(failure)
        )
    try:
        graph.load({"Person": spark.range(2).selectExpr("'x' as name")}, mode="append")
    except ConstraintViolation as broken:
        said["violations"] = broken.total
    rows = spark.readStream.format("rate").load().selectExpr("cast(value as string) as name")
    try:
        graph.spark.stream(
            rows, "Person", mode="append", query="q", checkpoint=place / "checkpoint"
        )
    except NotAvailable as refused:
        said["stream"] = refused.code
    print(json.dumps(said))


def _person(name: str, age: int) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "age": age}}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
