"""The cases of tests/cases/history: the changes of commits, as the feed reports them."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.history.commit_changes import ChangeBlock
from tests.history.conftest import CASES


def _cases() -> list[Any]:
    body = tomllib.loads((CASES / "history" / "changes.toml").read_text())
    return [pytest.param(case, id=f"{case['rule']} {case['name']}") for case in body["case"]]


@pytest.mark.parametrize("case", _cases())
def test_case(case: dict[str, Any], museum: Graph) -> None:
    loaded = museum.history.commits(limit=1)[0].commit_id
    for step in case["step"]:
        _run(museum, step)

    page = museum.history.changes(
        case.get("feed", "main"), start=f"after:{loaded}", **case.get("filter", {})
    )

    assert [_told(block) for block in page.blocks] == case["blocks"]
    assert page.caught_up
    if "merged" in case:
        found = [block.commit.merged_parent is not None for block in page.blocks]
        assert found == case["merged"]
    _check_images(case, page.blocks)
    for block in page.blocks:  # the same, asked for by commit
        same = museum.history.commit_changes(block.commit.commit_id, **case.get("filter", {}))
        assert same.block == block


def _run(graph: Graph, step: dict[str, Any]) -> None:
    branch = step.get("branch", "main")
    if "fork" in step:
        graph.branches.create(step["fork"])
    elif "merge" in step:
        graph.merge(step["merge"])
    elif "load" in step:
        graph.load(step["load"].encode(), mode=step["mode"], branch=branch)
    else:
        graph.mutate(f"query q() {{ {step['mutate']} }}", branch=branch)


def _told(block: ChangeBlock) -> list[str]:
    # Identities of types are random: among edges any order of types is right, so sort by name.
    lines = [(c.kind == "edge", c.type_name, c) for c in block.changes]
    ordered = sorted(lines, key=lambda line: line[:2])
    kinds = [line[0] for line in lines]
    assert kinds == sorted(kinds)
    return [f"{c.op} {c.kind} {c.type_name} {c.id}" for _, _, c in ordered]


def _check_images(case: dict[str, Any], blocks: list[ChangeBlock]) -> None:
    changes = [change for block in blocks for change in block.changes]
    for side in ("before", "after"):
        for name, value in case.get(side, {}).items():
            image = getattr(changes[0], side)
            assert image["properties"][name] == (None if value == "null" else value)
    for change in changes:
        assert (change.before is None) == (change.op == "insert")
        assert (change.after is None) == (change.op == "delete")
        if change.id in case.get("ends", {}):
            start, end = case["ends"][change.id]
            assert change.endpoints == {"from": start, "to": end}
