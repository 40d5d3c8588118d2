"""The cases under tests/cases/query, one test each. Adding a case needs no Python."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.query import (
    check_query,
    describe_operation,
    explain,
    explain_json,
    format_queries,
    parse_queries,
    plan_query,
)
from omnigraph.query.checked import CheckedQuery
from omnigraph.syntax import Diagnostic, SourceError
from tests.query.loading import case_id, cases, query_text, schema

CHECKED = cases("spec", "grammar", "typing", "mutations")


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
    for query in checked:
        plan = plan_query(query, schema(case["schema"]))
        assert explain(plan).startswith(f"query {query.name}(")
        assert explain_json(plan)["query"] == query.name
        result = describe_operation(query, schema(case["schema"])).to_json()["result"]
        if "columns" in case:
            assert [item["name"] for item in result] == case["columns"]
        if "kinds" in case:
            assert [item["kind"] for item in result] == case["kinds"]


@pytest.mark.parametrize(
    "case", [case for case in CHECKED if not case.get("codes")], ids=case_id
)
def test_formatting_keeps_the_meaning(case: dict[str, Any]) -> None:
    text = query_text(case)
    once = format_queries(text)
    assert format_queries(once) == once
    assert parse_queries(once) == parse_queries(text)
