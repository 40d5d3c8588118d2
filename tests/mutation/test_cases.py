"""The cases of tests/cases/write: mutations and loads, what they do and what they refuse."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError

CASES = Path(__file__).parent.parent / "cases" / "write"


def load_cases() -> list[Any]:
    """The cases of loads that start from the data of their schema."""
    return [case for case in _cases("loads") if "many" not in case.values[0]]


def _cases(*files: str) -> list[Any]:
    found = []
    for file in files:
        body = tomllib.loads((CASES / f"{file}.toml").read_text())
        for case in body["case"]:
            case = {"schema": body["schema"], **case}
            found.append(pytest.param(case, id=f"{case['rule']}-{case['name']}".replace(" ", "_")))
    return found


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One graph per schema, to be copied."""
    found = {}
    for schema in CASES.glob("*.pg"):
        where = tmp_path_factory.mktemp("templates") / schema.stem
        graph = omnigraph.init(where, schema.read_text())
        graph.load(schema.with_suffix(".jsonl"), mode="overwrite")
        found[schema.stem] = where
    return found


@pytest.mark.parametrize("case", _cases("mutations", "loads"))
def test_case(case: dict[str, Any], templates: dict[str, Path], tmp_path: Path) -> None:
    where = tmp_path / "g"
    shutil.copytree(templates[case["schema"]], where)
    graph = omnigraph.open(where)
    _fill(graph, case.get("many"))
    for step in case["step"]:
        run_step(graph, step)
    check_after(graph, case)


def run_step(graph: Graph, step: dict[str, Any]) -> None:
    before, commits = _exported(graph), len(graph.history.commits())
    if "error" in step:
        _check_refused(graph, step)
        assert _exported(graph) == before
        assert len(graph.history.commits()) == commits
        return
    result = _execute(graph, step)
    made = len(graph.history.commits()) - commits
    if "commits" in step:
        assert made == step["commits"]
    assert made == (1 if step.get("commit", True) else 0)
    assert (result.commit is not None) == step.get("commit", True)
    if "load" in step:
        assert result.total == step["loaded"]
    else:
        assert result.affected_nodes == step.get("nodes", 0)
        assert result.affected_edges == step.get("edges", result.affected_edges)
    if "holds" in step:
        assert step["holds"] in _exported(graph)


def _execute(graph: Graph, step: dict[str, Any]) -> Any:
    if "load" in step:
        data = step["load"].encode()
        return graph.load(data, mode=step["mode"], strict=step.get("strict", True))
    query = f"query q({step.get('signature', '')}) {{ {step['mutate']} }}"
    return graph.mutate(query, params=json.loads(step.get("params", "{}")))


def _check_refused(graph: Graph, step: dict[str, Any]) -> None:
    with pytest.raises(OmnigraphError) as caught:
        _execute(graph, step)
    error = caught.value
    assert error.code == step["error"], error
    assert error.remedy
    assert step.get("says", "") in str(error)
    violations = error.details.get("violations", [])
    if "rules" in step:
        assert [violation["rule"] for violation in violations] == step["rules"]
        assert error.details["total"] == len(step["rules"])
    if "lines" in step:
        lines = [v["line"] for v in violations if "line" in v]
        assert lines == step["lines"], violations


def check_after(graph: Graph, case: dict[str, Any]) -> None:
    lines = _exported(graph).splitlines()
    for line in case.get("has", "").splitlines():
        assert not line or line in lines
    records = [json.loads(line) for line in lines]
    counts = Counter(record.get("type") or record["edge"] for record in records)
    assert {name: counts[name] for name in case.get("count", {})} == case.get("count", {})
    if "same" in case:
        wanted, name = case["same"]["type"], case["same"]["property"]
        values = [record["data"][name] for record in records if record.get("type") == wanted]
        assert len(values) > 1
        assert len(set(values)) == 1


def _fill(graph: Graph, many: dict[str, Any] | None) -> None:
    if many is None:
        return
    for mode in many.get("modes", ["append"]):
        data = {"seen": False} if not many.get("keyed") else {}
        rows = [
            {**data, **({"k": f"k{i}"} if many.get("keyed") else {})} for i in range(many["rows"])
        ]
        assert graph.load({many["type"]: rows}, mode=mode).total == many["rows"]


def _exported(graph: Graph) -> str:
    return b"".join(graph.export()).decode()
