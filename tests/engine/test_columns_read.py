"""Column pruning: a key that is the id is read once, and the column of a look-up is not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.engine import Reader, ReadOptions
from omnigraph.engine.plan.access_choice import Access
from omnigraph.storage.lance.tables import PinnedTable
from tests.engine.graphs import reader_of
from tests.graphs import repository

SCHEMA = """
node Person { name: String @key  age: I32 }
node Place { floor: I32 @key }
node Label { kind: enum(old, new) @key }
edge Knows: Person -> Person { since: I32? }
"""
DATA = {
    "Person": [{"name": "Ann", "age": 1}, {"name": "Ben", "age": 2}, {"name": "Cem", "age": 3}],
    "Place": [{"floor": 7}],
    "Label": [{"kind": "new"}],
    "Knows": [{"from": "Ann", "to": "Ben"}, {"from": "Ann", "to": "Cem"}],
}
ASKED = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name, $p.age } }"
FOLLOWED = """query q($n: String) { match { $p: Person { name: $n }  $p knows $q }
    return { $q.name as name, $q.age as age } order { name } }"""


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return reader_of(tmp_path / "g", SCHEMA, DATA)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of every scan of a type."""
    found: list[tuple[str, ...]] = []
    scan = PinnedTable.scan

    def noted(self: PinnedTable, columns: Sequence[str], *rest: Any, **more: Any) -> Any:
        if self.ref.path != "__manifest":
            found.append(tuple(columns))
        return scan(self, columns, *rest, **more)

    monkeypatch.setattr(PinnedTable, "scan", noted)
    return found


@pytest.mark.parametrize("access", ["probe", "cache"])
def test_both_ways_show_the_key(reader: Reader, access: Any) -> None:
    options = ReadOptions(access=access)
    found = reader.query(ASKED, params={"n": "Ben"}, options=options).rows()
    assert found == [{"p.name": "Ben", "p.age": 2}]
    followed = reader.query(FOLLOWED, params={"n": "Ann"}, options=options)
    assert followed.rows() == [{"name": "Ben", "age": 2}, {"name": "Cem", "age": 3}]
    assert followed.to_arrow()["name"].to_pylist() == ["Ben", "Cem"]


def test_a_look_up_does_not_read_the_column_of_its_condition(
    reader: Reader, scanned: list[tuple[str, ...]]
) -> None:
    reader.query(ASKED, params={"n": "Ann"}, options=ReadOptions(access="probe"))
    assert scanned == [("age",)]


def test_of_one_node_only_the_other_ends_of_its_edges_are_read(
    reader: Reader, scanned: list[tuple[str, ...]]
) -> None:
    reader.query(FOLLOWED, params={"n": "Ann"}, options=ReadOptions(access="probe"))
    assert sorted(scanned) == [("age",), ("age", "id"), ("dst",)]


def test_a_look_up_may_read_no_column_at_all(
    reader: Reader, scanned: list[tuple[str, ...]]
) -> None:
    text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
    options = ReadOptions(access="probe")
    assert reader.query(text, params={"n": "Ann"}, options=options).rows() == [{"p.name": "Ann"}]
    assert reader.query(text, params={"n": "Nobody"}, options=options).rows() == []
    assert scanned == [(), ()]


def test_a_key_in_memory_is_the_column_of_ids(
    reader: Reader, scanned: list[tuple[str, ...]]
) -> None:
    nodes = reader.newest("main").nodes("Person")
    assert nodes.column("name") is nodes.column("id")
    nodes.prepare(["id", "name", "age"])
    assert scanned == [("id",)]
    assert nodes.column("age").to_list() == [1, 2, 3]


@pytest.mark.parametrize(("kind", "key"), [("Place", "floor"), ("Label", "kind")])
def test_a_key_that_is_spelled_otherwise_stays_a_column(
    reader: Reader, kind: str, key: str
) -> None:
    nodes = reader.newest("main").nodes(kind)
    assert nodes.column(key) is not nodes.column("id")
    text = f"query q() {{ match {{ $x: {kind} }} return {{ $x.{key} as key }} }}"
    assert reader.query(text).rows() == [{"key": DATA[kind][0][key]}]


@pytest.mark.parametrize("number", [-(2**63), -(2**31) - 1, -1, 0, 5, 2**31, 2**63, 2**64 - 1])
@pytest.mark.parametrize("name", ["small", "wide", "high"])
def test_Q_47_a_number_that_a_column_cannot_hold_is_in_none(
    tmp_path: Path, name: str, number: int
) -> None:
    schema = "node N { k: String @key  small: I32? @index  wide: I64? @unique  high: U64? @index }"
    graph = omnigraph.init(tmp_path / "g", schema)
    with graph.write() as w:
        for at in range(10):
            w.insert("N", {"k": f"k{at}", "small": at, "wide": at, "high": at})
        w.insert("N", {"k": "low", "small": -(2**31), "wide": -(2**63), "high": 2**64 - 1})
    reader = Reader(repository(graph))
    kind = "I64" if number < 2**63 else "U64"
    text = f"query q($x: {kind}) {{ match {{ $n: N  $n.{name} = $x }} return {{ $n.k as k }} }}"
    ways: tuple[Access, ...] = ("probe", "cache")
    found = [
        reader.query(text, params={"x": number}, options=ReadOptions(access=access)).rows()
        for access in ways
    ]
    stored = {"small": -(2**31), "wide": -(2**63), "high": 2**64 - 1}[name]
    expected = [f"k{number}"] if 0 <= number < 10 else ["low"] if number == stored else []
    assert found == [[{"k": k} for k in expected]] * 2


def test_lists_of_instants_of_one_day_are_groups_of_their_own(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node T { k: String @key\n many: [DateTime]? }")
    with graph.write() as batch:
        batch.insert("T", {"k": "a", "many": ["2021-03-04T12:00:00Z"]})
        batch.insert("T", {"k": "b", "many": ["2021-03-04T12:00:01Z"]})
    text = "query q() { match { $t: T } return { $t.many, count($t) as n } }"
    assert [row["n"] for row in graph.query(text)] == [1, 1]
