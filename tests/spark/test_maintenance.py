"""Maintenance on executors: compaction, indexes and columns, with unchanged content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.outcomes import content
from tests.support.inline_tasks import InlineTasks
from tests.support.internals import repository_of
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidInput
from omnigraph.settings import Settings
from omnigraph.spark import maintenance
from omnigraph.spark.tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "node Person { name: String @key  age: I32? }"


def test_executors_compact_large_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    for n in range(5):
        records = [{"type": "Person", "data": {"name": f"p{n}-{m}"}} for m in range(4)]
        graph.load(records, mode="append", upkeep=False)
    before, commits = content(graph), len(graph.history.commits())
    ran: list[str] = []

    class Noting(InlineTasks):
        def run(self, name, function, specs, *, light=False):  # type: ignore[no-untyped-def]
            ran.append(name)
            return super().run(name, function, specs, light=light)

    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", lambda *_: Noting())
    monkeypatch.setattr(maintenance, "DRIVER_ROWS_MAX", 10)
    done = {one.type_key: one for one in graph.maintenance.optimize(engine="spark")}
    assert "compacting files" in ran
    assert done["node:Person"].fragments_removed >= 5
    assert done["node:Person"].fragments_added == 1
    assert content(graph) == before
    assert len(graph.history.commits()) == commits
    assert broken_promises(graph.uri) == []
    with pytest.raises(InvalidInput, match="not a maintenance engine"):
        graph.maintenance.optimize(engine="other")


def test_executors_build_the_indexes_of_large_tables_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = "node Doc { name: String @key  text: String @index  v: Vector(2)? @index }"
    graph = omnigraph.init(tmp_path / "g", schema)
    for n in range(4):
        data = [{"name": f"d{n}-{m}", "text": f"word{n} all", "v": [n, m]} for m in range(6)]
        records = [{"type": "Doc", "data": values} for values in data]
        graph.load(records, mode="append", upkeep=False)
    ran: list[int] = []

    class Noting(InlineTasks):
        def run(self, name, function, specs, *, light=False):  # type: ignore[no-untyped-def]
            ran.append(len(specs))
            return super().run(name, function, specs, light=light)

    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", lambda *_: Noting())
    monkeypatch.setattr(maintenance, "DRIVER_ROWS_MAX", 7)
    states = {
        (one.property, one.kind): one for one in graph.maintenance.build_indexes(engine="spark")
    }
    assert {one.state for one in states.values()} == {"built"}
    assert ("v", "IVF_FLAT") in states  # built by the driver
    assert ran == [2] * (len(states) - 1)
    assert all(one.rows_covered == 24 for one in states.values())
    table = repository_of(graph).tables.open(graph.snapshot().pin("node:Doc").ref)
    assert table.scan(["id"], "id = 'd2-3'")["id"].to_pylist() == ["d2-3"]
    found = table.dataset.to_table(columns=["id"], full_text_query="word3")
    assert sorted(found["id"].to_pylist()) == [f"d3-{m}" for m in range(6)]
    assert "ScalarIndexQuery" in table.dataset.scanner(filter="id = 'd2-3'").explain_plan()
    assert broken_promises(graph.uri) == []
    assert {one.state for one in graph.maintenance.build_indexes(engine="spark")} == {"current"}
    with pytest.raises(InvalidInput, match="not a maintenance engine"):
        graph.maintenance.build_indexes(engine="other")


WIDER = "node Person { name: String @key  age: I64?  shown: String  next: I64? }"
COMPUTE = {"Person.shown": 'name + "!"', "Person.next": "age + 1"}


def test_executors_fill_the_columns_of_large_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (_in_pieces(tmp_path / name) for name in ("here", "there"))
    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", lambda *_: InlineTasks())
    monkeypatch.setattr(maintenance, "DRIVER_ROWS_MAX", 5)
    here.apply_schema(WIDER, compute=COMPUTE, engine="local")
    there.apply_schema(WIDER, compute=COMPUTE, engine="spark")
    assert content(there) == content(here)
    assert broken_promises(there.uri) == []
    with pytest.raises(InvalidInput, match="not a maintenance engine"):
        there.apply_schema(WIDER, engine="other")


def test_maintenance_on_a_real_spark_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (_in_pieces(tmp_path / name) for name in ("here", "there"))
    monkeypatch.setattr(maintenance, "DRIVER_ROWS_MAX", 5)
    ran: list[str] = []
    run = SparkTasks.run

    def noting(tasks, name, function, specs, *, light=False):  # type: ignore[no-untyped-def]
        ran.append(name)
        return run(tasks, name, function, specs, light=light)

    monkeypatch.setattr(SparkTasks, "run", noting)
    for graph, engine in ((here, "local"), (there, "spark")):
        graph.apply_schema(WIDER, compute=COMPUTE, engine=engine)
        built = graph.maintenance.build_indexes(engine=engine)
        assert {one.rows_covered for one in built} == {20}
        graph.maintenance.optimize(engine=engine)
    assert ran[0] == "filling columns"
    assert {"filling columns", "building indexes", "compacting files"} <= set(ran)
    assert content(there) == content(here)
    assert broken_promises(there.uri) == []


def _in_pieces(where: Path) -> Graph:
    """Twenty people in files of four."""
    graph = omnigraph.init(where, SCHEMA)
    for n in range(5):
        data = [{"name": f"p{n}-{m}", "age": n if m else None} for m in range(4)]
        records = [{"type": "Person", "data": values} for values in data]
        graph.load(records, mode="append", upkeep=False)
    return graph


@pytest.mark.parametrize(("rows", "engine"), [(0, "here"), (100, "tasks")])
def test_auto_chooses_the_engine_by_the_size_of_an_index(
    rows: int, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    records = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(50 + rows)]
    graph.load(records, mode="append", upkeep=False)
    started: list[str] = []

    def start(_: Settings) -> InlineTasks:
        started.append("tasks")
        return InlineTasks()

    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", start)
    monkeypatch.setattr(maintenance, "AUTO_INDEX_ROWS_MIN", 60)
    graph.maintenance.build_indexes(engine="auto")
    assert bool(started) == (engine == "tasks")
