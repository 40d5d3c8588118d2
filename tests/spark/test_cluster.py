"""Loads on a real cluster whose workers die: atomic, and never hanging."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.spark.random_loads import SCHEMA
from tests.support.promises import Expected, broken_promises, pending_operations
from tests.support.spark_cluster import SparkCluster, spark_cluster

import omnigraph

pytestmark = [pytest.mark.spark, pytest.mark.crash]

PEOPLE = 400
ROOT = Path(__file__).parents[2]
WAIT_S_MAX = 600.0  # a cluster on a busy machine; nothing waits this long when it works


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path / "cluster") as found:
        yield found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    omnigraph.init(tmp_path / "g", SCHEMA)
    lines = [f'{{"type":"Person","data":{{"name":"p{n}"}}}}' for n in range(PEOPLE)]
    lines += [f'{{"edge":"Knows","from":"p{n}","to":"p{n - 1}"}}' for n in range(1, PEOPLE)]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    return tmp_path


def _load(cluster: SparkCluster, place: Path, **environ: str) -> subprocess.Popen[str]:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.cluster_load", cluster.url, "g", "data.jsonl"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path, **environ},
        stdout=subprocess.PIPE,
        text=True,
    )


def _wait(what: Callable[[], bool], load: subprocess.Popen[str]) -> None:
    deadline = monotonic() + WAIT_S_MAX
    while not what():
        assert load.poll() is None, "the load ended before it came to this point"
        assert monotonic() < deadline
        sleep(0.02)


def _answer(load: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = load.communicate(timeout=WAIT_S_MAX)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@pytest.mark.parametrize("point", ["task.before_files", "task.after_files"])
def test_a_worker_that_dies_while_it_stages_costs_only_time(
    point: str, cluster: SparkCluster, place: Path
) -> None:
    flag = place / "flag"
    load = _load(cluster, place, OMNIGRAPH_FAILPOINTS=f"{point}=pause:{flag}")
    _wait(flag.exists, load)
    cluster.kill_worker(0)
    while load.poll() is None:  # tasks of the worker that is left stop at the same place
        flag.unlink(missing_ok=True)
        sleep(0.05)
    assert _answer(load)["total_entities"] == 2 * PEOPLE - 1
    graph = omnigraph.open(place / "g")
    assert graph.snapshot().pin("node:Person").rows == PEOPLE
    assert graph.snapshot().pin("edge:Knows").rows == PEOPLE - 1
    assert broken_promises(graph.uri) == []


def test_a_commit_survives_workers_that_die_between_two_table_commits(
    cluster: SparkCluster, place: Path
) -> None:
    flag = place / "flag"
    load = _load(cluster, place, OMNIGRAPH_FAILPOINTS=f"table.after_commit=pause:{flag}")
    _wait(flag.exists, load)
    cluster.kill_worker(0)
    cluster.kill_worker(1)
    flag.unlink()
    assert _answer(load)["total_entities"] == 2 * PEOPLE - 1
    assert broken_promises(str(place / "g")) == []


def test_a_cluster_without_workers_is_a_stalled_job(cluster: SparkCluster, place: Path) -> None:
    flag = place / "flag"
    pause = f"task.before_files=pause:{flag}"
    stall = {"OMNIGRAPH_SPARK_STALL_SECONDS": "8"}
    load = _load(cluster, place, OMNIGRAPH_FAILPOINTS=pause, **stall)
    _wait(flag.exists, load)
    cluster.kill_worker(0)
    cluster.kill_worker(1)
    started = monotonic()
    answer = _answer(load)
    assert answer["reason"] == "spark_stalled"
    assert monotonic() - started < 120
    graph = omnigraph.open(place / "g")
    assert graph.snapshot().pin("node:Person").rows == 0
    assert broken_promises(graph.uri) == []
    assert not list((place / "g" / "_staging").rglob("intent.json"))


@pytest.mark.parametrize("point", ["stage.after_intent", "stage.after_files", "table.after_commit"])
def test_a_driver_that_dies_leaves_the_graph_as_it_was_or_complete(
    point: str, cluster: SparkCluster, place: Path
) -> None:
    load = _load(cluster, place, OMNIGRAPH_FAILPOINTS=f"{point}=kill")
    assert load.wait(timeout=WAIT_S_MAX) == -9
    left = frozenset(pending_operations(str(place / "g")))
    graph = omnigraph.open(place / "g")
    people = graph.snapshot().pin("node:Person").rows
    assert people in (0, PEOPLE)
    assert graph.snapshot().pin("edge:Knows").rows == max(people - 1, 0)
    assert broken_promises(graph.uri, Expected(recovered=left)) == []
    assert graph.load(place / "data.jsonl", mode="merge", engine="local").nodes == {
        "Person": PEOPLE
    }
