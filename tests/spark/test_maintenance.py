"""Files of large tables are rewritten by tasks, and nothing that a graph says changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.compare import content

import omnigraph
from omnigraph.errors import InvalidInput
from omnigraph.spark import maintenance
from omnigraph.testing.inline_tasks import InlineTasks
from omnigraph.testing.promises import broken_promises

SCHEMA = "node Person { name: String @key  age: I32? }"


def test_executors_join_the_files_of_large_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    for n in range(5):
        records = [{"type": "Person", "data": {"name": f"p{n}-{m}"}} for m in range(4)]
        graph.load(records, mode="append", upkeep=False)
    before, commits = content(graph), len(graph.commits())
    ran: list[str] = []

    class Noting(InlineTasks):
        def run(self, name, function, specs, *, light=False):  # type: ignore[no-untyped-def]
            ran.append(name)
            return super().run(name, function, specs, light=light)

    monkeypatch.setattr("omnigraph.spark.engine.start_tasks", Noting)
    monkeypatch.setattr(maintenance, "DRIVER_ROWS_MAX", 10)
    done = {one.type_key: one for one in graph.optimize(engine="spark")}
    assert "joining files" in ran
    assert done["node:Person"].fragments_removed >= 5
    assert done["node:Person"].fragments_added == 1
    assert content(graph) == before
    assert len(graph.commits()) == commits
    assert broken_promises(graph.uri) == []
    with pytest.raises(InvalidInput, match="not an engine of maintenance"):
        graph.optimize(engine="other")
