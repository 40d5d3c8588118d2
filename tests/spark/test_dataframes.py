"""DataFrames: loads from frames and databases, exports, and the data source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, InvalidInput
from omnigraph.spark.source.data_source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  ok: Bool?
  born: Date?
  seen: DateTime?
  tags: [String]?
  v: Vector(2)?
}
edge Knows: Person -> Person { since: U64? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    people = [
        {"name": f'p{n} "q" \\ ü', "age": n, "score": n / 3, "ok": n % 2 == 0, "born": n,
         "seen": "2024-01-01T10:00:00.123Z", "tags": ["a", 'b"'], "v": [n, 0.5]}
        for n in range(20)
    ]  # fmt: skip
    records = [{"type": "Person", "data": person} for person in [*people, {"name": ""}]]
    records += [
        {"edge": "Knows", "from": people[n]["name"], "to": people[0]["name"],
         "data": {"id": f"k{n}", "since": 2**63 + n}}
        for n in range(5)
    ]  # fmt: skip
    graph.load(records, mode="append")
    return graph


def test_frames_of_several_types_are_one_commit(tmp_path: Path, spark: SparkSession) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    people = spark.range(1000).selectExpr(
        "concat('p', id) as who",
        "cast(id % 90 as int) as age",
        "date'2020-01-02' as born",
        "timestamp'2024-01-01 10:00:00' as seen",
        "array(cast(id as double), 0.5D) as v",
    )
    knows = people.selectExpr("who as src", "'p1' as dst", "cast(7 as long) as since")
    columns = {"who": "name"}
    commits = len(graph.history.commits())
    result = graph.load({"Person": people}, mode="append", columns=columns, message="people")
    assert result.nodes == {"Person": 1000}
    both = {"Person": people.selectExpr("concat(who, 'x') as name"), "Knows": knows}
    result = graph.load(both, mode="append", idempotency_key="both")
    assert (result.nodes, result.edges) == ({"Person": 1000}, {"Knows": 1000})
    assert len(graph.history.commits()) == commits + 2
    again = graph.load(both, mode="append", idempotency_key="both")
    assert again.repeated
    assert graph.entity("node:Person", "p7")["born"] == "2020-01-02"


def test_violations_in_a_frame_name_the_row(tmp_path: Path, spark: SparkSession) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    frame = spark.range(10).repartition(1).selectExpr("'same' as name")
    with pytest.raises(InvalidData) as caught:
        graph.load(frame, mode="append", type="Person")
    assert caught.value.total == 9
    assert [v["line"] for v in caught.value.violations] == list(range(2, 11))
    with pytest.raises(InvalidInput, match="name of its type"):
        graph.load(frame, mode="append")
    with pytest.raises(InvalidInput, match="no property"):
        graph.load(frame.selectExpr("name", "1 as other"), mode="append", type="Person")


def test_a_table_of_a_database_is_loaded_over_jdbc(tmp_path: Path, spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    log = str(tmp_path / "derby.log")  # the database would write it where the tests run
    jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    url = f"jdbc:derby:{tmp_path / 'db'};create=true"
    options = {"url": url, "dbtable": "people", "driver": "org.apache.derby.jdbc.EmbeddedDriver"}
    rows = spark.createDataFrame([("ana", 30), ("bo", 40)], "name string, age int")
    rows.write.format("jdbc").options(**options).save()
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    frame = spark.read.format("jdbc").options(**options).load()
    names = {name: name.lower() for name in frame.columns}
    graph.load(frame, mode="merge", type="Person", columns=names)
    assert graph.entity("node:Person", "bo")["age"] == 40


def test_a_type_of_a_snapshot_is_a_frame(graph: Graph, spark: SparkSession) -> None:
    register(spark)
    before = graph.snapshot().commit_id
    graph.load([{"type": "Person", "data": {"name": "new", "age": 99}}], mode="append")
    reader = spark.read.format("omnigraph").option("type", "Person")
    now, then = reader.load(graph.uri), reader.option("at", before).load(graph.uri)
    assert (now.count(), then.count()) == (22, 21)
    exported = {
        json.loads(line)["data"]["name"]: json.loads(line)["data"] for line in _nodes(graph)
    }
    for row in now.collect():
        assert row["age"] == exported[row["name"]]["age"]
        assert row["v"] == exported[row["name"]]["v"]
    few = reader.option("columns", "name, age").load(graph.uri)
    assert few.columns == ["name", "age"]
    assert few.where("age >= 15 and name <> 'x' and age in (16, 99)").count() == 1
    assert now.where("age >= 15 and age in (16, 99)").count() == 2
    knows = spark.read.format("omnigraph").option("type", "edge:Knows").load(graph.uri)
    joined = knows.join(now, knows.src == now.id)
    assert joined.count() == 5
    assert {int(row["since"]) for row in knows.collect()} == {2**63 + n for n in range(5)}


def _nodes(graph: Graph) -> list[bytes]:
    return [line for line in b"".join(graph.export()).splitlines() if b'"type"' in line]


def test_the_changes_between_two_states_are_a_frame(graph: Graph, spark: SparkSession) -> None:
    register(spark)
    graph.branches.create("work")
    before = graph.snapshot().commit_id
    name = 'p3 "q" \\ ü'
    renewed = {"name": name, "age": 33, "born": 7, "v": [1, 2], "seen": "2025-01-01T00:00:00Z"}
    same = {"name": 'p4 "q" \\ ü', "age": 4, "score": 4 / 3, "ok": True, "born": 4,
            "seen": "2024-01-01T10:00:00.123Z", "tags": ["a", 'b"'], "v": [4, 0.5]}  # fmt: skip
    records = [{"type": "Person", "data": data} for data in (renewed, same, {"name": "new"})]
    graph.load(records, mode="merge", branch="work")
    graph.mutate("query q() { delete Knows where since = 9223372036854775812 }", branch="work")
    reader = spark.read.format("omnigraph").option("changes", before).option("branch", "work")
    found = {row["id"]: row for row in reader.option("type", "Person").load(graph.uri).collect()}
    assert {id: row["op"] for id, row in found.items()} == {"new": "insert", name: "update"}
    assert found["new"]["before"] is None
    assert found[name]["before"]["age"] == 3
    assert (found[name]["after"]["age"], found[name]["after"]["v"]) == (33, [1, 2])
    assert str(found[name]["after"]["born"]) == "1970-01-08"
    gone = reader.option("type", "Knows").option("columns", "since").load(graph.uri)
    assert [(row["op"], row["id"], row["after"]) for row in gone.collect()] == [
        ("delete", "k4", None)
    ]
    assert int(gone.select("before.since").first()[0]) == 2**63 + 4
    back = spark.read.format("omnigraph").option("type", "Person").option("changes", "work")
    assert back.load(graph.uri).where("op = 'delete'").count() == 1
    with pytest.raises(Exception, match="no column 'nothing'"):
        back.option("columns", "nothing").load(graph.uri)
