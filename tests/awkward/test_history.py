"""Awkward names in diffs, feeds, histories, blame, merges and undoing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import MergeConflicts
from omnigraph.lang.schema import EdgeType, NodeType
from tests.awkward.names import (
    EXPECTED,
    KEYED,
    LINK,
    Content,
    Record,
    as_ndjson,
    exported,
    records,
    schema,
    thinned,
    value,
)

KEYS = (f"node:{KEYED}", f"edge:{LINK}", "node:Pair", "edge:Src", "node:Src", "node:Found")


def image(owner: NodeType | EdgeType, shown: dict[str, Any]) -> Record:
    """The image of an entity in the form of ``content``."""
    properties = shown["properties"]
    assert set(properties) == set(owner.properties), owner.key
    assert ("endpoints" in shown) == isinstance(owner, EdgeType)
    row = {f"#{word}": end for word, end in shown.get("endpoints", {}).items()}
    for name, item in owner.properties.items():
        given = properties[name]
        if given is not None and not item.type.is_blob:
            given = item.type.accept(given)
        row[name] = tuple(given) if isinstance(given, list) else given
    return row


def changed(number: int = 50) -> list[Record]:
    """The first entity of some types with another value of every property."""
    accepted, found = schema(), []
    for line in records(1):
        key = f"edge:{line['edge']}" if "edge" in line else f"node:{line['type']}"
        if key not in KEYS:
            continue
        owner = accepted.type(key)
        for at, (name, item) in enumerate(owner.properties.items()):
            if name not in owner.key_properties:
                line["data"][name] = value(item.type, number + at)
        if key == "node:Pair":
            line["data"]["weight"] = 1.0
        found.append(line)
    return found


@pytest.fixture
def moved(graph: Graph) -> tuple[Graph, Content, str]:
    """The graph after another commit, what that changed, and the commit."""
    from tests.awkward.names import content

    done = graph.load(as_ndjson(changed()), mode="merge", format="ndjson")
    assert done.commit is not None
    return graph, content(changed()), done.commit.commit_id


def test_a_diff_a_commit_and_the_feed_show_every_property(
    moved: tuple[Graph, Content, str],
) -> None:
    graph, after, commit = moved
    before = graph.history.commit(commit).parent
    assert before is not None
    pages = {
        "diff": list(graph.diff(before, "main")),
        "commit": graph.history.commit_changes(commit).changes,
        "feed": [
            change
            for block in graph.history.changes(start=f"after:{before}").blocks
            for change in block.changes
        ],
    }
    accepted = schema()
    for name, changes in pages.items():
        seen = {}
        for change in changes:
            owner = accepted.type(f"{change.kind}:{change.type_name}")
            assert change.before is not None, name
            assert change.after is not None, name
            place = owner.key, change.id
            assert image(owner, change.before) == EXPECTED[place], (name, place)
            seen[place] = image(owner, change.after)
            assert json.loads(json.dumps(change.to_json()))["after"] == change.after
        assert seen == after, name


def test_blame_and_history_name_every_property(moved: tuple[Graph, Content, str]) -> None:
    graph, after, commit = moved
    accepted = schema()
    for key, id in after:
        owner = accepted.type(key)
        shown = graph.history.blame(key, id)
        words = [*owner.endpoints.values(), *owner.properties]
        assert [item.property for item in shown] == words
        for item in shown:
            assert item.commit is not None, (key, item.property)
            same = EXPECTED[key, id].get(item.property, ()) == after[key, id].get(item.property, ())
            assert (item.commit.commit_id == commit) is not same, (key, item.property)
        events = list(graph.history.entity(key, id))
        assert [str(event.op) for event in events] == ["update", "insert"]
        assert image(owner, events[0].after or {}) == after[key, id]
        assert image(owner, events[1].after or {}) == EXPECTED[key, id]
        entity = graph.entity(key, id)
        assert set(entity) == {*owner.system_columns, *owner.properties}


def test_blobs_are_read_by_their_names(graph: Graph) -> None:
    for name in ("blob", "data", "uri"):
        id, stored = next(
            (i, row[name])
            for (key, i), row in EXPECTED.items()
            if key == "node:Found" and row[name]
        )
        blob = graph.blob("node", "Found", id, name)
        assert b"".join(blob.chunks()) == stored_bytes(stored)


def stored_bytes(text: str) -> bytes:
    from base64 import b64decode

    return b64decode(text.removeprefix("base64:"))


class TestMerging:
    def test_properties_merge_one_by_one(self, graph: Graph) -> None:
        """Every second word is changed on one side, every other one on the other."""
        owner = schema().nodes[KEYED]
        words = [word for word in owner.properties if word != "every"]
        id = next(i for key, i in EXPECTED if key == owner.key)
        graph.branches.create("select/from")
        sides = {"main": words[::2], "select/from": words[1::2]}
        row = dict(EXPECTED[owner.key, id])
        for branch, chosen in sides.items():
            new = {w: value(owner.properties[w].type, 70 + n) for n, w in enumerate(chosen)}
            with graph.write(branch) as batch:
                batch.update(KEYED, id, new)
            for w, given in new.items():
                stored = owner.properties[w].type.accept(given)
                row[w] = tuple(stored) if isinstance(stored, list) else stored
        preview = graph.merge("select/from", dry_run=True, level="property")
        assert preview is not None
        graph.merge("select/from", level="property")
        found = exported(graph)
        wrong = {w: (v, row[w]) for w, v in found[owner.key, id].items() if v != row[w]}
        assert not wrong
        assert found == EXPECTED | {(owner.key, id): row}

    @pytest.mark.parametrize("key", [f"node:{KEYED}", f"edge:{LINK}"])
    def test_conflicts_are_reported_and_resolved(self, graph: Graph, key: str) -> None:
        owner = schema().type(key)
        words = [word for word in thinned(owner.properties) if word != "every"]
        id = next(i for k, i in EXPECTED if k == key)
        graph.branches.create("a")
        lines = {}
        for number, branch in enumerate(("main", "a")):
            (line,) = [
                r
                for r in records(1)
                if r["data"]["id"] == id
                and (r.get("edge") == owner.name or r.get("type") == owner.name)
            ]
            for at, word in enumerate(words):
                line["data"][word] = value(owner.properties[word].type, 80 + at + number)
            lines[branch] = line
            graph.load(as_ndjson([line]), mode="merge", branch=branch, format="ndjson")
        with pytest.raises(MergeConflicts) as refused:
            graph.merge("a", level="property")
        (conflict,) = [c for c in refused.value.conflicts if c["entity_id"] == id]
        assert (conflict["entity_kind"], conflict["type_name"]) == (owner.kind, owner.name)
        decided = {
            "entity_kind": owner.kind,
            "type_name": owner.name,
            "entity_id": id,
            "properties": {w: lines["a"]["data"][w] for w in words},
        }
        graph.merge("a", level="property", resolutions=[decided])
        from tests.awkward.names import content

        assert exported(graph) == EXPECTED | content([lines["a"]])

    def test_a_strategy_decides_what_both_sides_changed(self, graph: Graph) -> None:
        from tests.awkward.names import content

        graph.branches.create("b")
        graph.load(as_ndjson(changed(50)), mode="merge", format="ndjson")
        graph.load(as_ndjson(changed(60)), mode="merge", branch="b", format="ndjson")
        graph.merge("b", strategy="theirs")
        ours, theirs = content(changed(50)), content(changed(60))
        expected = dict(EXPECTED)
        for key, row in theirs.items():
            base = EXPECTED[key]
            expected[key] = {
                name: ours[key][name] if value == base[name] else value
                for name, value in row.items()
            }
        assert exported(graph) == expected


class TestUndoing:
    def test_revert_cherry_pick_restore_and_reset(self, moved: tuple[Graph, Content, str]) -> None:
        graph, after, commit = moved
        before = graph.history.commit(commit).parent
        assert before is not None
        graph.revert(commit)
        assert exported(graph) == EXPECTED
        graph.cherry_pick(commit)
        assert exported(graph) == EXPECTED | after
        graph.restore(before, {key: [id] for key, id in after})
        assert exported(graph) == EXPECTED
        graph.branches.create("c")
        graph.reset(commit, "c")
        assert exported(graph, "c") == EXPECTED | after
