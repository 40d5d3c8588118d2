"""The examples of the Spark guide run as printed, in order, in one directory."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.guide_examples import ELSEWHERE, SCHEMA, run_section, sections
from tests.support.spark_cluster import spark_cluster

import omnigraph
from omnigraph.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_every_example_that_needs_nothing_else_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    Path("people.pg").write_text(SCHEMA)
    Path("people.jsonl").write_text(
        '{"type":"Person","data":{"name":"ana","age":30,"bio":"sails"}}\n'
    )
    more = ['{"type":"Person","data":{"name":"fay"}}', '{"edge":"Knows","from":"fay","to":"gus"}']
    Path("more.jsonl").write_text("\n".join(more))
    Path("incoming").mkdir()
    Path("incoming/1.json").write_text('{"name":"ed","age":55}\n')
    found = sections()
    blocks = [block for title in found if title not in ELSEWHERE for block in found[title]]
    assert {language for language, _ in blocks} == {"sh", "python"}
    for command in "".join(text for language, text in blocks if language == "sh").splitlines():
        program, *arguments = shlex.split(command)
        assert program == "omnigraph"
        assert run(arguments) == 0, command
    assert omnigraph.open("people").entity("node:Person", "ana")["v"] is not None
    # In a process that starts here: the Java side resolves paths where it was started.
    script = "\n".join(text for language, text in blocks if language == "python")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    graph = omnigraph.open("people")
    assert graph.snapshot().pin("node:Person").rows == 5
    assert len(Path("bad.jsonl").read_text().splitlines()) == 1
    assert list(Path("exported").glob("node-Person-*.parquet"))


def test_the_examples_for_a_cluster_run_on_one(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "people", SCHEMA)
    (tmp_path / "cluster.jsonl").write_text('{"type":"Person","data":{"name":"ana"}}\n')
    with spark_cluster(tmp_path / "cluster", workers=1) as cluster:
        run_section("On a cluster", tmp_path, {"spark://host:7077": cluster.url})
    assert graph.entity("node:Person", "ana")["name"] == "ana"
