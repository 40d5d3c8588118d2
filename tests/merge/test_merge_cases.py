"""The cases of tests/cases/branch: what a merge comes to, and what it refuses."""

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
from omnigraph.errors import MergeConflicts

CASES = Path(__file__).parent.parent / "cases"


def _cases() -> list[Any]:
    body = tomllib.loads((CASES / "branch" / "merges.toml").read_text())
    return [
        pytest.param(case, id=f"{case['rule']}-{case['name']}".replace(" ", "_"))
        for case in body["case"]
    ]


@pytest.fixture(scope="session")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data every case starts from, to be copied."""
    where = tmp_path_factory.mktemp("templates") / "mus"
    graph = omnigraph.init(where, (CASES / "write" / "mus.pg").read_text())
    graph.load(CASES / "write" / "mus.jsonl", mode="overwrite")
    return where


@pytest.mark.parametrize("case", _cases())
def test_case(case: dict[str, Any], museum: Path, tmp_path: Path) -> None:
    where = tmp_path / "g"
    shutil.copytree(museum, where)
    graph = omnigraph.open(where)
    graph.branches.create("dev")
    for branch in ("dev", "main"):
        for text in case.get(branch, ()):
            graph.mutate(f"query q() {{ {text} }}", branch=branch)
    before, heads = exported(graph), [graph.snapshot(b).commit_id for b in ("main", "dev")]
    options = {**case.get("merge", {}), "resolutions": case.get("resolve", [])}
    preview = graph.merge("dev", dry_run=True, **options)
    assert exported(graph) == before

    if "conflicts" in case:
        assert [shown(c.to_json(), case) for c in preview.conflicts] == case["conflicts"]
        with pytest.raises(MergeConflicts) as caught:
            graph.merge("dev", **options)
        assert [shown(c, case) for c in caught.value.conflicts] == case["conflicts"]
        assert caught.value.details["merge_conflicts"] == caught.value.conflicts
        assert preview.outcome == "conflicts"
        check_told(case, caught.value)
        assert exported(graph) == before
        assert graph.snapshot().commit_id == heads[0]
        return

    result = graph.merge("dev", **options)
    assert (result.outcome, preview.outcome) == (case["outcome"], case["outcome"])
    assert preview.conflicts == ()
    if case["outcome"] == "already_up_to_date":
        assert result.commit is None
    else:
        assert result.commit is not None
        assert [result.commit.parent, result.commit.merged_parent] == heads
        assert graph.snapshot().commit_id == result.commit.commit_id
        assert graph.snapshot("dev").commit_id == heads[1]
    check_after(graph, case, before)
    changes = [(c.type_name, c.id, c.before, c.after) for c in graph.diff(heads[0], "main")]
    assert [(c.type_name, c.id, c.before, c.after) for c in preview.changes] == changes


def check_told(case: dict[str, Any], error: MergeConflicts) -> None:
    """What the report says besides kind, type and id."""
    told = error.conflicts
    if "properties" in case:
        assert [c["properties"] for c in told] == case["properties"]
    if "depends" in case:
        depends = [[e["entity_id"] for e in c.get("depends_on", ())] for c in told]
        assert depends == case["depends"]
    known = ("--resolve", "--strategy", "--level property")
    if "remedies" in case:
        assert [flag for flag in known if flag in error.remedy] == case["remedies"]
    for conflict in told:
        for side in ("base", "ours", "theirs"):
            assert conflict[side] is None or set(conflict[side]) >= set(conflict["properties"])


def check_after(graph: Graph, case: dict[str, Any], before: str) -> None:
    after = exported(graph)
    if case.get("same"):
        assert after == before
    lines = after.splitlines()
    for line in case.get("has", "").splitlines():
        assert not line or line in lines
    records = [json.loads(line) for line in lines]
    counts = Counter(record.get("type") or record["edge"] for record in records)
    assert {name: counts[name] for name in case.get("count", {})} == case.get("count", {})


def shown(conflict: dict[str, Any], case: dict[str, Any]) -> list[str]:
    """A conflict as the case writes it: ids that were made up by the graph are stars."""
    assert conflict["message"]
    wanted = {entry[2] for entry in case["conflicts"]}
    id = conflict["entity_id"] if conflict["entity_id"] in wanted else "*"
    return [conflict["kind"], conflict["type_name"], id]


def exported(graph: Graph) -> str:
    return b"".join(graph.export()).decode()
