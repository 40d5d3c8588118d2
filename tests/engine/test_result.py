"""Results: rows, Arrow, notebook display, entity form, profile."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.engine import ReadOptions
from tests.engine.graphs import load_graph, make_graph


@pytest.fixture(scope="module")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return load_graph(tmp_path_factory.mktemp("m") / "g", "mus")


def _query(body: str) -> str:
    return f"query q() {{ {body} }}"


def test_arrow_has_the_declared_types(museum: Graph) -> None:
    result = museum.query(
        _query("match { $c: Curator  $c $m:mentors $d } return { $c.age, $m.since, $d }")
    )
    table = result.to_arrow()
    assert table.schema.field("c.age").type == pa.int32()
    assert table.schema.field("m.since").type == pa.date32()
    assert pa.types.is_struct(table.schema.field("d").type)
    assert table.num_rows == len(result) == 3


def test_Q_67_an_empty_answer_keeps_its_types(museum: Graph) -> None:
    text = _query('match { $c: Curator { handle: "zz" } } return { $c.age, $c.tags, $c, 7 }')
    schema = museum.query(text).to_arrow().schema
    assert [str(field.type) for field in schema][:2] == ["int32", "list<item: string>"]
    assert pa.types.is_struct(schema.field("c").type)


def test_instants_and_whole_numbers_survive_other_libraries(tmp_path: Path) -> None:
    schema = "node N { k: String @key  at: DateTime?  ats: [DateTime]?  n: I64?  m: U64 }"
    moment, largest = "2024-02-29T12:34:56.789Z", 2**64 - 1
    full = {"k": "a", "at": moment, "ats": [moment], "n": 2**53 + 1, "m": largest}
    records = [{"type": "N", "data": full}, {"type": "N", "data": {"k": "b", "m": 1}}]
    graph = make_graph(tmp_path / "g", schema, records)
    text = _query("match { $n: N } return { $n.at, $n.ats, $n.n, $n.m, $n } order { $n.k }")
    table = graph.query(text).to_arrow()
    table.validate(full=True)
    assert [row.isoformat(timespec="milliseconds") for row in table["n.at"].to_pylist()[:1]] == [
        "2024-02-29T12:34:56.789+00:00"
    ]
    frame = graph.query(text).to_pandas()
    assert frame["n.at"][0].isoformat() == "2024-02-29T12:34:56.789000+00:00"
    assert str(frame["n.ats"][0][0]) == "2024-02-29T12:34:56.789"
    assert frame["n"][0]["at"] == frame["n.at"][0]
    assert (frame["n.n"][0], frame["n.m"][0]) == (2**53 + 1, largest)
    assert frame["n.n"].isna().tolist() == [False, True]


def test_Q_63_whole_entities_can_be_ids(museum: Graph) -> None:
    text = _query('match { $c: Curator { handle: "ana" } } return { $c }')
    assert museum.query(text, options=ReadOptions(entity_form="id")).rows() == [{"c": "ana"}]


def test_S_8b_wide_numbers_can_be_strings(tmp_path: Path) -> None:
    record = {"type": "N", "data": {"k": "a", "n": 2**53 + 1, "m": [2**60]}}
    graph = make_graph(tmp_path / "g", "node N { k: String @key  n: I64  m: [I64] }", [record])
    result = graph.query(_query("match { $n: N } return { $n.n as n, $n.m as m }"))
    assert result.rows() == [{"n": 2**53 + 1, "m": [2**60]}]
    assert result.rows(js_safe=True) == [{"n": str(2**53 + 1), "m": [str(2**60)]}]


def test_Q_62_of_two_columns_with_one_name_the_later_stays(museum: Graph) -> None:
    text = _query('match { $h: Hall { code: "H1" } } return { $h.code as x, $h.capacity as x }')
    result = museum.query(text)
    assert result.rows() == [{"x": 120}]
    assert result.to_arrow().num_columns == 2


def test_the_envelope_names_what_was_read(museum: Graph) -> None:
    body = museum.query(_query("match { $h: Hall } return { $h.code } order { $h.code }")).to_json()
    assert list(body) == [
        "query_name",
        "target",
        "row_count",
        "columns",
        "rows",
        "graph_commit_id",
    ]
    assert body["target"] == {"branch": "main", "snapshot": None}
    assert body["graph_commit_id"] == museum.snapshot().commit_id
    assert body["rows"] == [{"h.code": "H1"}, {"h.code": "H2"}]


def test_a_notebook_shows_a_table_with_escaped_values(tmp_path: Path) -> None:
    record = {"type": "N", "data": {"k": "<b>"}}
    graph = make_graph(tmp_path / "g", "node N { k: String @key }", [record])
    shown = graph.query(_query("match { $n: N } return { $n.k }"))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "1 rows from branch main via q" in shown


def test_a_profile_says_what_every_step_did(museum: Graph) -> None:
    text = _query(
        "match { $c: Curator  $c mentors $d  not { $d guards $h  $h.capacity > 0 } } "
        "return { $d.handle }"
    )
    result = museum.query(text, options=ReadOptions(profile=True))
    steps = [(step.depth, step.rows_out, step.access) for step in result.steps]
    assert (0, 3, "adjacency") in steps
    assert any(depth == 1 for depth, _, _ in steps)
    assert result.profile_json()["row_count"] == 2
    assert len(result.profile_lines()) == len(steps) + 1
    assert museum.query(text).steps == ()
