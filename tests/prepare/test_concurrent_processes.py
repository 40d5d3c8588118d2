"""Constraints stay true when many processes write at once; every loser gets a typed error."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError

SCHEMA = """
node P { k: String @key  u: String? @unique  writer: I32? }
edge E: P -> P @card(0..2)
"""
PROCESSES = 6
OPERATIONS = 8


def _work(uri: str, worker: int, failures: Any) -> None:
    rng = Random(worker)
    graph = omnigraph.open(uri)
    for _ in range(OPERATIONS):
        a, b = rng.choice("abcdefgh"), rng.choice("abcdefgh")
        query = rng.choice(
            [
                "query q($a: String, $b: String) { insert P { k: $a, u: $b } }",
                "query q($a: String, $b: String) { insert E { from: $a, to: $b } }",
                "query q($a: String, $b: String) { delete P where k = $a }",
                "query q($a: String, $b: String) { update P set { u: $b } where k = $a }",
            ]
        )
        try:
            graph.mutate(query, params={"a": a, "b": b})
        except OmnigraphError as error:
            failures.put((error.code, type(error).__name__))
        except BaseException as error:
            failures.put(("untyped", repr(error)))
            raise


def test_six_processes_never_break_a_constraint(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load({"P": [{"k": k} for k in "abcdef"]}, mode="append")
    context = multiprocessing.get_context("spawn")
    failures = context.Queue()
    workers = [
        context.Process(target=_work, args=(graph.uri, i, failures)) for i in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    codes = set()
    while not failures.empty():
        codes.add(failures.get()[0])
    allowed = {"constraint_violation", "published_dataset_version_conflict", "read_set_conflict"}
    assert codes <= allowed | {"contention", "conflict", "recovery_required"}
    _check(omnigraph.open(graph.uri, read_only=True))


def _check(graph: Any) -> None:
    assert graph.maintenance.check().findings == []
    records = [json.loads(line) for line in b"".join(graph.export()).splitlines()]
    nodes = [record["data"] for record in records if "type" in record]
    edges = [record for record in records if "edge" in record]
    ids = [node["id"] for node in nodes]
    taken = [node["u"] for node in nodes if node["u"] is not None]
    assert len(ids) == len(set(ids))
    assert len(taken) == len(set(taken))
    assert {edge["from"] for edge in edges} | {edge["to"] for edge in edges} <= set(ids)
    assert all(count <= 2 for count in Counter(edge["from"] for edge in edges).values())
