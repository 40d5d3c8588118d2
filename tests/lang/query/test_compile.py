"""Selecting and compiling: names, kinds of queries, what an error carries."""

from __future__ import annotations

import json
import pickle

import pytest
from tests.lang.query.loading import schema

from omnigraph.errors import QueryNotFound
from omnigraph.lang.query import ReadPlan, WritePlan, compile_query, parse_queries, select_query
from omnigraph.lang.syntax import SourceError

TWO = """
query halls() { match { $h: Hall } return { $h } }
query curators() @description("all of them") { match { $c: Curator } return { $c.handle } }
query halls() { match { $c: Curator } return { $c } }
query remove($c: String) @instruction("ask first") { delete Hall where code = $c }
"""


def test_q2_a_query_is_selected_by_its_exact_name() -> None:
    assert compile_query(TWO, schema("mus"), "curators").name == "curators"
    with pytest.raises(QueryNotFound, match="did you mean `curators`"):
        compile_query(TWO, schema("mus"), "Curators")


def test_q2_the_first_of_several_queries_with_one_name_counts() -> None:
    plan = compile_query(TWO, schema("mus"), "halls").plan
    assert isinstance(plan, ReadPlan)
    assert plan.pattern.variable("h").type.name == "Hall"


def test_q2_without_a_name_the_text_must_hold_one_query() -> None:
    with pytest.raises(QueryNotFound, match="4 queries"):
        select_query(parse_queries(TWO))
    with pytest.raises(QueryNotFound, match="no query"):
        select_query(parse_queries("// nothing"))
    only = parse_queries("query q() { match { $h: Hall } return { $h } }")
    assert select_query(only).name.text == "q"


def test_q3_a_query_reads_or_writes() -> None:
    read, write = (compile_query(TWO, schema("mus"), name) for name in ("halls", "remove"))
    assert isinstance(read.plan, ReadPlan)
    assert isinstance(write.plan, WritePlan)
    read.require_read()
    write.require_write()


@pytest.mark.parametrize(("name", "call"), [("halls", "require_write"), ("remove", "require_read")])
def test_t44_a_query_is_not_called_as_the_other_kind(name: str, call: str) -> None:
    compiled = compile_query(TWO, schema("mus"), name)
    with pytest.raises(SourceError) as caught:
        getattr(compiled, call)()
    assert caught.value.diagnostics[0].code == "T44"
    assert caught.value.remedy


def test_q6_annotations_belong_to_the_query() -> None:
    file = parse_queries(TWO)
    assert select_query(file, "curators").description == "all of them"
    assert select_query(file, "curators").instruction is None
    assert select_query(file, "remove").instruction == "ask first"


def test_only_the_selected_query_has_to_be_valid() -> None:
    text = TWO + "query broken() { match { $x: Nope } return { $x } }"
    assert compile_query(text, schema("mus"), "curators").name == "curators"
    with pytest.raises(SourceError):
        compile_query(text, schema("mus"), "broken")


def test_an_error_says_everything_as_text_and_as_data() -> None:
    text = "query q() {\n  match { $c: Curator  $c.hande = 3 }\n  return { $c }\n}"
    with pytest.raises(SourceError) as caught:
        compile_query(text, schema("mus"), file="curators.gq")
    error = caught.value
    assert error.render().splitlines() == [
        "curators.gq:2:27: error[T6]: node type Curator has no property `hande`",
        "2 |   match { $c: Curator  $c.hande = 3 }",
        "  |                           ^^^^^",
        "  = did you mean `handle`?",
    ]
    body = json.loads(json.dumps(error.to_json()))
    assert body["reason"] == "language_error"
    (finding,) = body["details"]["diagnostics"]
    assert finding["code"] == "T6"
    assert (finding["file"], finding["line"], finding["column"]) == ("curators.gq", 2, 27)
    assert finding["source_line"].strip() == "match { $c: Curator  $c.hande = 3 }"
    assert finding["hint"] == "did you mean `handle`?"


def test_the_first_finding_of_an_error_is_the_one_the_rules_demand() -> None:
    text = "query q() { match { $c: Curator } return { 7, count($c) } order { $c.age } }"
    with pytest.raises(SourceError) as caught:
        compile_query(text, schema("mus"))
    assert [item.code for item in caught.value.diagnostics] == ["T40", "T9"]
    assert "error[T40]" in caught.value.message


@pytest.mark.parametrize("name", ["halls", "remove"])
def test_compiled_queries_and_their_errors_travel_between_processes(name: str) -> None:
    compiled = compile_query(TWO, schema("mus"), name)
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy.plan == compiled.plan
    assert copy.checked == compiled.checked
    with pytest.raises(SourceError) as caught:
        compile_query("query q() { match { $c: Nope } return { $c } }", schema("mus"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.diagnostics == caught.value.diagnostics
    assert again.render() == caught.value.render()
