"""Properties of the feed and of entity histories, over random histories."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.history.commit_changes import ChangeBlock, change_json
from omnigraph.snapshots.diff import EntityChange
from tests.history import random_history

HISTORIES = int(os.environ.get("OMNIGRAPH_TEST_HISTORIES", "6"))
STEPS = 30

Key = tuple[str, str, str]
State = dict[Key, Any]


@pytest.fixture
def busy_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are compacted and the manifest is folded after a few writes instead of many."""
    monkeypatch.setattr("omnigraph.storage.lance.staging.compaction_tiers.SMALL_FRAGMENTS_MAX", 3)
    monkeypatch.setattr("omnigraph.catalog.publisher.SMALL_FRAGMENTS_MAX", 5)
    monkeypatch.setattr("omnigraph.catalog.publisher.HISTORY_FRAGMENTS_MAX", 3)


@pytest.mark.usefixtures("busy_upkeep")
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_replaying_the_feed_rebuilds_every_state_and_every_history(
    seed: int, tmp_path: Path
) -> None:
    graph = random_history.make(tmp_path / "g", seed, STEPS)
    chance = random.Random(seed)
    for branch in graph.branches.list():
        blocks = list(feed(graph, branch, chance))
        commits = graph.history.commits(branch)[::-1]
        assert [block.commit for block in blocks] == commits[1:]
        replay(graph, branch, blocks, chance)
        check_histories(graph, branch, blocks)


def feed(graph: Graph, branch: str, chance: random.Random) -> Iterator[ChangeBlock]:
    """The whole feed, in pages of all sizes; parts of one commit are put together again."""
    page = graph.history.changes(branch, start="beginning", limit=chance.randint(1, 5))
    blocks: list[ChangeBlock] = []
    while True:
        for block in page.blocks:
            if blocks and blocks[-1].commit == block.commit:
                blocks[-1] = ChangeBlock(block.commit, blocks[-1].changes + block.changes)
            else:
                blocks.append(block)
        if page.next_page_token is not None:
            assert page.cursor is None
            page = graph.history.changes(
                branch, page_token=page.next_page_token, limit=chance.randint(1, 5)
            )
        elif page.caught_up:
            yield from blocks
            return
        else:
            page = graph.history.changes(
                branch, cursor=page.cursor, commits_max=chance.randint(1, 4)
            )


def replay(graph: Graph, branch: str, blocks: list[ChangeBlock], chance: random.Random) -> None:
    state: State = {}
    for block in blocks:
        places = [(c.kind == "edge", c.type_id, c.id.encode()) for c in block.changes]
        assert places == sorted(set(places))
        for change in block.changes:
            apply(state, change)
        if block is blocks[-1] or chance.random() < 0.2:
            assert state == exported(graph, block.commit.commit_id)
    if not blocks:
        assert exported(graph, branch) == {}


def apply(state: State, change: EntityChange) -> None:
    key = (change.kind, change.type_name, change.id)
    assert state.get(key) == change.before, "an image before a change is what was there"
    assert change.before != change.after
    if change.after is None:
        del state[key]
    else:
        state[key] = change.after


def exported(graph: Graph, at: str) -> State:
    found: State = {}
    for line in b"".join(graph.export(at=at)).splitlines():
        record = json.loads(line)
        data = record["data"]
        id = data.pop("id")
        image: dict[str, Any] = {"properties": data}
        if "edge" in record:
            image["endpoints"] = {"from": record["from"], "to": record["to"]}
        kind = "edge" if "edge" in record else "node"
        found[kind, record.get("edge") or record["type"], id] = image
    return found


def check_histories(graph: Graph, branch: str, blocks: list[ChangeBlock]) -> None:
    """The history of each entity is what the feed says of it, and blame follows from it."""
    told: dict[Key, list[tuple[str, Any]]] = {}
    for block in blocks:
        for change in block.changes:
            key = (change.kind, change.type_name, change.id)
            body = change_json(change)
            event = {name: body.get(name) for name in ("op", "before", "after")}
            told.setdefault(key, []).append((block.commit.commit_id, event))
    for (kind, name, id), expected in told.items():
        found = [
            (event.commit.commit_id, {"op": event.op, "before": event.before, "after": event.after})
            for event in graph.history.entity(f"{kind}:{name}", id, branch)
        ]
        assert found == expected[::-1], (branch, id)
        if expected[-1][1]["op"] != "delete":
            check_blame(graph, branch, (kind, name, id), expected)


def check_blame(graph: Graph, branch: str, key: Key, events: list[tuple[str, Any]]) -> None:
    setters: dict[str, str] = {}
    for commit_id, event in events:
        before = (event["before"] or {"properties": {}})["properties"]
        for name, value in (event["after"] or {"properties": {}})["properties"].items():
            if event["op"] == "insert" or before.get(name) != value:
                setters[name] = commit_id
    for item in graph.history.blame(f"{key[0]}:{key[1]}", key[2], branch):
        if item.property in ("from", "to"):
            continue
        assert item.commit is not None
        if item.commit.commit_id != setters[item.property]:
            # Set on a branch that was merged: there it must have been set to this very value.
            assert graph.history.commit(setters[item.property]).merged_parent is not None
            (change,) = [
                c
                for c in graph.history.commit_changes(item.commit.commit_id, types=[key[1]]).changes
                if c.id == key[2]
            ]
            assert change.after is not None
            assert change.after["properties"][item.property] == item.value
