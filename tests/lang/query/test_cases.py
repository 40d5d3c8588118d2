"""The cases under tests/cases/query, one test each. Adding a case needs no Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.lang.query.loading import case_id, cases, query_text, schema

from omnigraph.errors import ParameterError
from omnigraph.lang.query import (
    Plan,
    SchemaOrigin,
    bind_parameters,
    check_query,
    compile_query,
    describe_operation,
    explain,
    explain_json,
    format_queries,
    lint_queries,
    parse_queries,
    plan_query,
    read_parameters,
)
from omnigraph.lang.query.checked import CheckedQuery
from omnigraph.lang.syntax import Diagnostic, Source, SourceError

CHECKED = cases("spec", "grammar", "typing", "expressions", "results", "mutations")


def findings(case: dict[str, Any]) -> tuple[list[Diagnostic], str, list[CheckedQuery]]:
    """All findings of a text, how they are shown, and the queries that are right."""
    try:
        file = parse_queries(query_text(case))
    except SourceError as error:
        return list(error.diagnostics), error.render(), []
    found: list[Diagnostic] = []
    shown: list[str] = []
    checked = []
    for query in file.queries:
        try:
            checked.append(check_query(query, schema(case["schema"]), file.source))
        except SourceError as error:
            found.extend(error.diagnostics)
            shown.append(error.render())
    return found, "\n".join(shown), checked


@pytest.mark.parametrize("case", CHECKED, ids=case_id)
def test_checking(case: dict[str, Any]) -> None:
    found, shown, checked = findings(case)
    assert [item.code for item in found] == case.get("codes", []), shown
    for text in case.get("shows", ()):
        assert text in shown
    for finding in found:
        assert finding.span is not None
        assert finding.span.start <= finding.span.end
        helps = finding.hint or finding.remedy or finding.expected
        assert helps or finding.code in ("P001", "P009"), f"{finding.code} leaves people alone"
    for query in checked:
        plan = plan_query(query, schema(case["schema"]))
        assert explain(plan).startswith(f"query {query.name}(")
        assert explain_json(plan)["query"] == query.name
        result = describe_operation(query, schema(case["schema"])).to_json()["result"]
        if "columns" in case:
            assert [item["name"] for item in result] == case["columns"]
        if "kinds" in case:
            assert [item["kind"] for item in result] == case["kinds"]


@pytest.mark.parametrize("case", [case for case in CHECKED if not case.get("codes")], ids=case_id)
def test_formatting_keeps_the_meaning(case: dict[str, Any]) -> None:
    text = query_text(case)
    once = format_queries(text)
    assert format_queries(once) == once
    assert parse_queries(once) == parse_queries(text)


@pytest.mark.parametrize("case", cases("plans"), ids=case_id)
def test_planning(case: dict[str, Any]) -> None:
    plans = [plan_of(case, body) for body in case["same"]]
    assert all(plan == plans[0] for plan in plans), [explain(plan) for plan in plans]
    assert all(repr(plan) == repr(plans[0]) for plan in plans)
    for body in case.get("other", ()):
        assert plan_of(case, body) != plans[0], body
    if "explain" in case:
        assert explain(plans[0]) == case["explain"].strip()


def plan_of(case: dict[str, Any], body: str) -> Plan:
    text = query_text({**case, "body": body})
    return compile_query(text, schema(case["schema"])).plan


@pytest.mark.parametrize("case", cases("parameters"), ids=case_id)
def test_binding(case: dict[str, Any]) -> None:
    text = query_text({**case, "body": "match { $p: Person } return { $p }"})
    declared = compile_query(text, schema(case["schema"])).checked.parameters
    given = case.get("given") or '{"a": ' + "9" * case["given_digits"] + "}"
    mode = case.get("mode", "standard")
    if "problems" in case:
        with pytest.raises(ParameterError) as caught:
            bind_parameters(declared, read_parameters(given), mode=mode)
        assert [item["name"] for item in caught.value.problems] == case["problems"]
        assert caught.value.to_json()["reason"] == "invalid_parameters"
        for text in case.get("shows", ()):
            assert text in caught.value.message
        return
    bound = bind_parameters(declared, read_parameters(given), mode=mode)
    assert repr(as_json(bound.values)) == repr(json.loads(case["values"]))


def as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("case", cases("lint"), ids=case_id)
def test_linting(case: dict[str, Any]) -> None:
    origin = SchemaOrigin("file", f"{case['schema']}.pg")
    report = lint_queries(Source("case.gq", case["query"]), schema(case["schema"]), origin)
    body = json.loads(json.dumps(report.to_json()))
    assert_contains(body, json.loads(case["report"]), "report")
    for path in case.get("absent", ()):
        *parents, last = path.split(".")
        inner: Any = body
        for step in parents:
            inner = inner[int(step)] if step.isdigit() else inner[step]
        assert last not in inner
    assert report.render().endswith("warnings")
    assert report.ok == (body["status"] == "ok")


def assert_contains(actual: Any, wanted: Any, path: str) -> None:
    """Objects may hold more than is wanted; lists must be of the same length."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            assert name in actual, f"{path}.{name}"
            assert_contains(actual[name], value, f"{path}.{name}")
    elif isinstance(wanted, list):
        assert len(actual) == len(wanted), f"{path}: {actual}"
        for at, value in enumerate(wanted):
            assert_contains(actual[at], value, f"{path}[{at}]")
    else:
        assert actual == wanted, path


@pytest.mark.parametrize("case", cases("format"), ids=case_id)
def test_formatting(case: dict[str, Any]) -> None:
    once = format_queries(case["input"])
    assert once == case["output"].removeprefix("\n")
    assert format_queries(once) == once
    assert parse_queries(once) == parse_queries(case["input"])
