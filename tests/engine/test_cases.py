"""Worked examples as data files: every case on every access path."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.engine.engine import ReadOptions
from omnigraph.engine.plan.access_choice import Access
from omnigraph.errors import OmnigraphError
from tests.engine.graphs import CASES, load_graph

NULL = "@null"  # TOML has no null


def _cases() -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.toml")):
        body = tomllib.loads(path.read_text())
        for case in body["cases"]:
            name = f"{path.stem}: {case['rule']} {case['name']}"
            found.append(pytest.param(body["graph"], case, id=name))
    return found


@pytest.fixture(scope="module", params=["no index", "indexed", "stale index"])
def graphs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Graph]:
    where = tmp_path_factory.mktemp("graphs")
    early = request.param == "stale index"
    found = {
        name: load_graph(where / name, name, indexed_early=early) for name in ("mus", "lnk", "doc")
    }
    if request.param == "indexed":
        for graph in found.values():
            graph.maintenance.build_indexes()
    return found


@pytest.mark.parametrize("access", ["cache", "probe"])
@pytest.mark.parametrize(("graph", "case"), _cases())
def test_case(
    graphs: dict[str, Graph],
    graph: str,
    case: dict[str, Any],
    access: Access,
) -> None:
    if "error" in case:
        with pytest.raises(OmnigraphError) as failed:
            _run(graphs[graph], case, case["body"], access)
        found = getattr(failed.value, "diagnostics", [failed.value])
        assert case["error"] in [item.code for item in found]
        return
    columns, rows = _run(graphs[graph], case, case["body"], access)
    expected = [[_value(item) for item in row] for row in case["rows"]]
    if "columns" in case:
        assert columns == case["columns"]
    if case.get("ordered"):
        assert rows == expected
    else:
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def _run(
    graph: Graph, case: dict[str, Any], body: str, access: Access
) -> tuple[list[str], list[list[Any]]]:
    text = f"query q({case.get('declared', '')}) {{ {body} }}"
    result = graph.query(text, params=case.get("params"), options=ReadOptions(access=access))
    return list(result.columns), [list(row.values()) for row in result.rows()]


def _value(item: Any) -> Any:
    if item == NULL:
        return None
    if isinstance(item, dict):
        return {name: _value(part) for name, part in item.items()}
    return item


def test_the_case_files_are_found() -> None:
    assert len(_cases()) > 80
