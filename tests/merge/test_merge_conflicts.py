"""Reports of merge conflicts against a brute-force model: everything at once, nothing that is not.

Random pairs of branches with rules across entities (``merge_model.py``). For each: the report names
exactly what is in the way, every rule that some decision would break among it; what is decided in
part leaves the rest; and once everything in the report is decided, from the report alone, the merge
goes through and its result is what was decided.

``OMNIGRAPH_TEST_MERGES`` raises the number of pairs (500 is what the project promises).
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.merge.merge_model import (
    RANGE_MAX,
    Broken,
    Key,
    Pair,
    State,
    broken,
    random_pair,
    read,
)
from tests.merge.test_three_way import contested

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidInput, MergeConflicts

PAIRS = int(os.environ.get("OMNIGRAPH_TEST_MERGES", "6")) * 4
CLASHES = ("divergent_insert", "divergent_update", "delete_vs_update")
Conflict = dict[str, Any]


def conflicts_of(graph: Graph, **options: Any) -> list[Conflict]:
    head = graph.snapshot().commit_id
    try:
        graph.merge("dev", **options)
    except MergeConflicts as refused:
        assert graph.snapshot().commit_id == head
        return refused.conflicts
    return []


def key_of(conflict: Conflict) -> Key:
    return f"{conflict['entity_kind']}:{conflict['type_name']}", conflict["entity_id"]


def named(conflict: Conflict, member: str) -> set[Key]:
    return {key_of(entity) for entity in conflict.get(member, ())}


# -- what the report has to say --------------------------------------------------------------------


def check_report(pair: Pair, conflicts: list[Conflict], level: str, strategy: str | None) -> None:
    """The report against every possible result."""
    _, open_ = pair.outcomes(level, strategy)
    clashes = [c for c in conflicts if c["kind"] in CLASHES and c["entity_id"] is not None]
    assert sorted(key_of(c) for c in clashes) == sorted(open_)
    for conflict in clashes:
        check_clash(pair, conflict)
    dropped = [c for c in conflicts if c["entity_id"] is None]
    assert [c["properties"] for c in dropped] == ([["b"]] if pair.dropped_and_changed() else [])
    found = [broken(state, pair.shape) for state in pair.results(level, strategy)]
    structural = [c for c in conflicts if c["kind"] not in CLASHES]
    for one in found:
        check_told(one, structural)
    for conflict in structural:
        check_true(conflict, found, open_)
        check_values(pair, conflict)


def check_clash(pair: Pair, conflict: Conflict) -> None:
    base, source, target = pair.images(key_of(conflict))
    assert set(conflict["properties"]) == contested(base, source, target)
    check_values(pair, conflict)


def check_values(pair: Pair, conflict: Conflict) -> None:
    """The values of the three sides are those of the sides."""
    for name, image in zip(("base", "theirs", "ours"), pair.images(key_of(conflict)), strict=True):
        shown = conflict[name]
        assert (shown is None) == (image is None)
        if image is not None:
            assert set(conflict["properties"]) <= set(shown)
            assert shown == {column: image[column] for column in shown}


def check_told(one: Broken, structural: list[Conflict]) -> None:
    """Whatever a combination of decisions breaks is in the report."""
    of_kind: dict[str, list[Conflict]] = {}
    for conflict in structural:
        of_kind.setdefault(conflict["kind"], []).append(conflict)
    orphans = {(key_of(c), *c["properties"]) for c in of_kind.get("orphan_edge", ())}
    assert one.orphans <= orphans
    for ids in one.unique.values():
        told = {
            c["entity_id"]
            for c in of_kind.get("unique_violation", ())
            if c["entity_id"] in ids or {id for _, id in named(c, "related")} & ids
        }
        assert len(told & ids) >= len(ids) - 1
    for source, ids in one.crowded.items():
        told = {
            c["entity_id"]
            for c in of_kind.get("cardinality_violation", ())
            if ("node:P", source) in named(c, "related")
        }
        assert len(told & ids) >= len(ids) - 2
    outside = {c["entity_id"] for c in of_kind.get("value_constraint_violation", ())}
    assert one.outside <= outside


def breaks(conflict: Conflict, one: Broken) -> bool:
    """Whether a result is wrong as a conflict says."""
    key, id = key_of(conflict)
    if conflict["kind"] == "orphan_edge":
        return ((key, id), conflict["properties"][0]) in one.orphans
    if conflict["kind"] == "unique_violation":
        (other,) = named(conflict, "related")
        return any({id, other[1]} <= ids for ids in one.unique.values())
    if conflict["kind"] == "cardinality_violation":
        (source,) = (node for kind, node in named(conflict, "related") if kind == "node:P")
        return source in one.crowded
    return id in one.outside


def check_true(conflict: Conflict, found: list[Broken], open_: dict[Key, Any]) -> None:
    """A conflict holds for some decisions; for all of them unless it says what it depends on."""
    holds = [breaks(conflict, one) for one in found]
    assert any(holds), conflict
    assert all(holds) == ("depends_on" not in conflict), conflict
    assert named(conflict, "depends_on") <= open_.keys()


# -- deciding from the report ----------------------------------------------------------------------


def decide_all(rng: random.Random, conflicts: list[Conflict]) -> list[dict[str, Any]]:
    """A decision about everything in the report, made of what the report says."""
    by_entity: dict[Key, list[Conflict]] = {}
    for conflict in conflicts:
        by_entity.setdefault(key_of(conflict), []).append(conflict)
    return [_decided(rng, found) for found in by_entity.values()]


def _decided(rng: random.Random, conflicts: list[Conflict]) -> dict[str, Any]:
    kinds = {conflict["kind"] for conflict in conflicts}
    first = conflicts[0]
    if first["entity_id"] is None or kinds & {"orphan_edge", "cardinality_violation"}:
        return {**first, "take": "delete"}
    values: dict[str, Any] = {}
    if "unique_violation" in kinds:
        values["email"] = None
    if "value_constraint_violation" in kinds:
        values["a"] = RANGE_MAX
    named = {name: first[name] for name in ("entity_kind", "type_name", "entity_id")}
    clash = next((c for c in conflicts if c["kind"] in CLASHES), None)
    if clash is None:
        return {**named, "properties": values}
    side = rng.choice(["ours", "theirs"])
    if values and clash[side] is None:
        return {**named, "take": side}  # without the entity no rule about it is broken
    return {**clash, "take": side, **({"properties": values} if values else {})}


def carried_out(pair: Pair, level: str, strategy: Any, decisions: list[dict[str, Any]]) -> State:
    """The result that the decisions ask for, by the rules."""
    state, _ = pair.outcomes(level, strategy)
    for decision in decisions:
        if decision["entity_id"] is None:
            continue
        key, take = key_of(decision), decision.get("take")
        base, source, target = pair.images(key)
        if take == "delete":
            state.pop(key, None)
            continue
        if take is not None:
            chosen = source if take == "theirs" else target
            disputed = contested(base, source, target)
            row = chosen
            if disputed:
                row = {}
                for name in target:
                    if name in disputed:
                        row[name] = chosen[name]
                    else:
                        was = None if base is None else base[name]
                        row[name] = target[name] if target[name] != was else source[name]
            if row is None:
                state.pop(key, None)
            else:
                state[key] = dict(row)
        if isinstance(decision.get("properties"), dict) and key in state:
            state[key] = {**state[key], **decision["properties"]}
    return state


# -- random pairs ----------------------------------------------------------------------------------


def check_pair(seed: str, where: Path, opened: Callable[[Graph], Graph] = lambda g: g) -> bool:
    """One random pair; whether there was anything in the way."""
    rng = random.Random(seed)
    level = rng.choice(["entity", "property", "property"])
    strategy = rng.choice([None, None, None, "ours", "theirs"])
    schemas, busy = rng.random() < 0.35, rng.random() < 0.9
    pair = random_pair(rng, schemas=schemas)
    while busy and not is_broken(pair, level, strategy):
        pair = random_pair(rng, schemas=schemas)
    options: dict[str, Any] = {"level": level, "strategy": strategy}
    graph = opened(pair.build(where))
    preview = graph.merge("dev", dry_run=True, **options)
    conflicts = conflicts_of(graph, **options)
    if preview.checked:
        assert [c.to_json() for c in preview.conflicts] == conflicts
    check_report(pair, conflicts, level, strategy)
    if conflicts:
        some = partly(rng, conflicts)
        left = conflicts_of(graph, **options, resolutions=some)
        check_left(conflicts, some, left)
        if not left:
            return True
        decisions = decide_all(rng, conflicts)
        assert conflicts_of(graph, **options, resolutions=decisions) == []
        assert read(graph) == carried_out(pair, level, strategy, decisions)
    elif graph.snapshot().commit_id != graph.snapshot("dev").commit_id:
        assert read(graph) == carried_out(pair, level, strategy, [])
    assert not broken(read(graph), pair.shape)
    assert graph.merge("dev").outcome == "already_up_to_date"
    return bool(conflicts)


def is_broken(pair: Pair, level: str, strategy: Any) -> bool:
    """Whether some result of a merge breaks a rule: entities that merely clash are frequent."""
    results = pair.results(level, strategy)
    return any(broken(state, pair.shape) for state in itertools.islice(results, 64))


def partly(rng: random.Random, conflicts: list[Conflict]) -> list[dict[str, Any]]:
    """One contested property of one entity decided, if there is any; all others open."""
    clashes = [c for c in conflicts if c["kind"] in CLASHES and c["properties"]]
    chosen = [c for c in clashes if c["entity_id"] is not None]
    if not chosen:
        return []
    one = rng.choice(chosen)
    name = rng.choice(one["properties"])
    return [{**one, "take": rng.choice(["ours", "theirs"]), "properties": [name]}]


def check_left(before: list[Conflict], some: list[dict[str, Any]], after: list[Conflict]) -> None:
    """What was decided is no conflict any more, and everything else still is."""
    if not after:
        decided = {key_of(decision) for decision in some}
        certain = [c for c in before if c["kind"] not in CLASHES]
        certain = [c for c in certain if not named(c, "depends_on") & decided]
        assert not certain, "a merge must not go through undecided"
    wanted = {key_of(c): set(c["properties"]) for c in before if c["kind"] in CLASHES}
    for decision in some:
        wanted[key_of(decision)] -= set(decision["properties"])
        if not wanted[key_of(decision)]:
            del wanted[key_of(decision)]
    assert {key_of(c): set(c["properties"]) for c in after if c["kind"] in CLASHES} == wanted


@pytest.mark.parametrize("part", range(4))
def test_everything_in_the_way_is_told_at_once_and_decided_from_the_report(
    tmp_path: Path, part: int
) -> None:
    found = [
        check_pair(f"{part}/{number}", tmp_path / f"g{number}") for number in range(PAIRS // 4)
    ]
    assert any(found), "no pair had a conflict"


# -- single rules ----------------------------------------------------------------------------------

TIES = """
node P { name: String @key  a: I32?  place: Vector(2)?  raw: Blob?  words: [String]? }
edge K: P -> P @card(1..2) { w: I32? }
"""


def ties(where: Path, *edges: tuple[str, str, str], text: str = TIES) -> Graph:
    graph = omnigraph.init(where, text)
    people = [{"type": "P", "data": {"name": name, "a": 0}} for name in ("x", "y", "z")]
    graph.load([*people, *map(edge, edges)], mode="merge")
    graph.branches.create("dev")
    return graph


def edge(tie: tuple[str, str, str], **values: Any) -> dict[str, Any]:
    id, source, target = tie
    return {"edge": "K", "from": source, "to": target, "data": {"id": id, **values}}


def delete_edge(graph: Graph, branch: str, id: str) -> None:
    with graph.write(branch) as w:
        w.delete_edge("K", id)


def test_too_few_edges_name_those_that_went_away(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g", ("k1", "x", "y"), ("k2", "x", "z"))
    delete_edge(graph, "dev", "k1")
    delete_edge(graph, "main", "k2")
    (conflict,) = conflicts_of(graph)
    assert (conflict["kind"], conflict["entity_id"]) == ("cardinality_violation", "k1")
    assert (conflict["base"], conflict["ours"]) == ({"from": "x"}, {"from": "x"})
    assert conflict["theirs"] is None
    assert key_of(conflict["related"][0]) == ("node:P", "x")
    assert conflicts_of(graph, resolutions=[{**conflict, "take": "ours"}]) == []


def test_too_many_edges_name_those_that_came(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g", ("k1", "x", "y"))
    for branch, id in (("dev", "k2"), ("main", "k3")):
        graph.load([edge((id, "x", "z"))], mode="merge", branch=branch)
    (conflict,) = conflicts_of(graph)
    assert conflict["entity_id"] == "k2"
    assert named(conflict, "related") == {("node:P", "x"), ("edge:K", "k1"), ("edge:K", "k3")}
    decided = {"entity_kind": "edge", "type_name": "K", "entity_id": "k3", "take": "delete"}
    assert conflicts_of(graph, resolutions=[decided]) == []


def test_a_stricter_cardinality_names_edges_of_the_target(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g", ("k1", "x", "y"))
    graph.apply_schema(TIES.replace("1..2", "1..1"), branch="dev")
    graph.load([edge(("k2", "x", "z"))], mode="merge")
    (conflict,) = conflicts_of(graph)
    assert (conflict["kind"], conflict["entity_id"]) == ("cardinality_violation", "k1")
    assert conflicts_of(graph, resolutions=[{**conflict, "take": "delete"}]) == []


def test_ends_of_an_edge_are_contested_like_properties(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g", ("k1", "x", "y"))
    graph.load([edge(("k1", "x", "z"), w=1)], mode="merge", branch="dev")
    graph.load([edge(("k1", "x", "x"))], mode="merge")
    (conflict,) = conflicts_of(graph)
    assert (conflict["kind"], conflict["properties"]) == ("divergent_update", ["to"])
    assert [conflict[side] for side in ("base", "ours", "theirs")] == [
        {"to": "y"},
        {"to": "x"},
        {"to": "z"},
    ]
    own = {**conflict, "properties": {"to": "y"}}
    assert conflicts_of(graph, resolutions=[own]) == []
    assert read(graph)["edge:K", "k1"] == {"from": "x", "to": "y", "w": 1}


def test_contested_blobs_vectors_lists_and_nulls(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g")
    values = {
        "dev": {"raw": b"theirs", "place": [1.0, 2.0], "words": ["t"], "a": None},
        "main": {"raw": b"ours", "place": [1.0, 3.0], "words": ["o"], "a": 7},
    }
    for branch, given in values.items():
        with graph.write(branch) as w:
            w.update("P", "x", given)
    (conflict,) = conflicts_of(graph)
    assert conflict["properties"] == ["a", "place", "raw", "words"]
    assert conflict["base"] == {"a": 0, "place": None, "raw": None, "words": None}
    assert conflict["theirs"]["raw"].startswith("6:")  # length and digest
    picked = [
        {**conflict, "take": "theirs", "properties": ["a", "raw"]},
        {**conflict, "take": "ours", "properties": ["place", "words"]},
    ]
    (left,) = conflicts_of(graph, resolutions=picked[:1])
    assert left["properties"] == ["place", "words"]
    assert conflicts_of(graph, resolutions=picked) == []
    found = graph.entity("node:P", "x")
    assert (found["a"], found["place"], found["words"]) == (None, [1.0, 3.0], ["o"])
    assert graph.blob("node", "P", "x", "raw").read() == b"theirs"


def test_an_edge_of_a_type_that_only_the_target_has_can_be_decided(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g", text=TIES[: TIES.index("edge")])
    graph.apply_schema(TIES)
    graph.load([edge(("k1", "x", "y"))], mode="merge")
    with graph.write("dev") as w:
        w.delete("P", "y")
    (conflict,) = conflicts_of(graph)
    assert (conflict["kind"], conflict["entity_id"]) == ("orphan_edge", "k1")
    assert conflict["related"] == [{"entity_kind": "node", "type_name": "P", "entity_id": "y"}]
    kept = {"entity_kind": "node", "type_name": "P", "entity_id": "y", "take": "ours"}
    assert graph.merge("dev", dry_run=True, resolutions=[kept]).conflicts == ()
    gone = graph.merge("dev", dry_run=True, resolutions=[{**conflict, "take": "delete"}])
    assert {change.id for change in gone.changes} == {"y", "k1"}


def test_a_revert_merges_by_property(tmp_path: Path) -> None:
    graph = ties(tmp_path / "g")
    with graph.write() as w:
        w.update("P", "x", {"a": 5})
    changed = graph.snapshot().commit_id
    with graph.write() as w:
        w.update("P", "x", {"words": ["later"]})
    with pytest.raises(MergeConflicts) as refused:
        graph.revert(changed, level="entity")
    assert "--level property" in refused.value.remedy
    graph.revert(changed)
    found = graph.entity("node:P", "x")
    assert (found["a"], found["words"]) == (0, ["later"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"take": "delete", "properties": {"a": 1}},
        {"take": "base", "properties": {"a": 1}},
        {"properties": ["a"]},
        {"take": "ours", "properties": ["nothing"]},
        {"entity_id": None, "take": "ours"},
    ],
)
def test_decisions_that_contradict_themselves_are_refused(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    graph = ties(tmp_path / "g")
    with graph.write("dev") as w:
        w.update("P", "x", {"a": 5})
    named = {"entity_kind": "node", "type_name": "P", "entity_id": "x"}
    with pytest.raises(InvalidInput):
        graph.merge("dev", resolutions=[{**named, **wrong}])
