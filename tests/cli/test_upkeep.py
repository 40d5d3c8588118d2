"""The verbs of upkeep: optimize, index, cleanup, fsck, repair, backup."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Program
from tests.graphs import people_graph


def test_optimize_reports_every_type_and_says_nothing_to_do_the_second_time(
    omnigraph: Program, tmp_path: Path
) -> None:
    graph = people_graph(tmp_path / "g")
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    done = omnigraph("optimize", "g", "--json").json
    by_key = {item["type_key"]: item for item in done["datasets"]}
    assert set(by_key) == {*graph.snapshot().pins, "__manifest"}
    assert (by_key["node:City"]["fragments_removed"], by_key["node:City"]["committed"]) == (2, True)
    again = omnigraph("optimize", "g")
    assert again.out.count("nothing to do") == len(by_key)
    assert "omnigraph optimize → " in again.err


def test_indexes_are_listed_built_and_dropped(omnigraph: Program, tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    assert "missing" in omnigraph("index", "list", "g").out
    built = omnigraph("index", "build", "g", "--json").json["indexes"]
    assert {item["state"] for item in built} == {"built"}
    status = omnigraph("index", "status", "g").out
    assert "2/2 rows  1 part" in status
    assert "0 to build" in status
    gone = omnigraph("index", "drop", "node", "Person", "name", "--uri", "g")
    assert gone.out == "dropped BTREE on node:Person.name\n"
    assert "1 to build" in omnigraph("index", "status", "g").out
    refused = omnigraph("index", "drop", "node", "Person", "name", "--uri", "g")
    assert refused.code == 1
    assert "has no index to drop" in refused.err
