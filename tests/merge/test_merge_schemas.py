"""Merging branches whose schemas are not the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeConflicts, SchemasDiffer

TEXT = """
node Person {
  name: String @key
  age: I32?
  email: String?
}
node City { name: String @key }
edge LivesIn: Person -> City { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", TEXT)
    with graph.write() as w:
        for name, age in (("ana", 30), ("bo", 41), ("cy", None)):
            w.insert("Person", {"name": name, "age": age, "email": f"{name}@x"})
        w.insert("City", {"name": "Oslo"})
        w.insert_edge("LivesIn", "ana", "Oslo")
    graph.branches.create("side")
    return graph


def entities(graph: Graph, type_name: str, branch: str = "main") -> dict[str, dict[str, Any]]:
    lines = b"".join(graph.export(types=[type_name], branch=branch)).splitlines()
    found = [json.loads(line)["data"] for line in lines]
    return {row.pop("id"): row for row in found}


def edit(*changes: tuple[str, str], text: str = TEXT) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def update(graph: Graph, branch: str, id: str, **values: Any) -> None:
    with graph.write(branch) as w:
        w.update("Person", id, values)


def test_a_schema_that_only_the_source_changed_is_taken_over(graph: Graph) -> None:
    text = edit(
        ("age: I32?", "age: I64?\n  score: F64"),
        ("email: String?", 'mail: String? @rename_from("email")'),
        ("node City", 'node Town @rename_from("City")'),
        ("-> City", "-> Town"),
    )
    graph.apply_schema(
        text + "node Pet { name: String @key }\nedge Owns: Person -> Pet\n",
        branch="side",
        backfill={"Person.score": 0.5},
    )
    with graph.write("side") as w:
        w.update("Person", "ana", {"age": 2**40, "score": 9.0})
        w.insert("Pet", {"name": "rex"})
        w.insert_edge("Owns", "bo", "rex")
    with graph.write() as w:
        w.update("Person", "bo", {"email": "new@x"})
        w.insert("Person", {"name": "dee", "age": 5})

    preview = graph.merge("side", dry_run=True)
    assert preview.conflicts == ()
    assert not preview.checked
    graph.merge("side")

    found = entities(graph, "Person")
    assert found["ana"] == {"age": 2**40, "mail": "ana@x", "name": "ana", "score": 9.0}
    assert found["bo"] == {"age": 41, "mail": "new@x", "name": "bo", "score": 0.5}
    assert found["dee"] == {"age": 5, "mail": None, "name": "dee", "score": 0.5}
    assert set(entities(graph, "Town")) == {"Oslo"}
    assert set(entities(graph, "Pet")) == {"rex"}
    assert len(entities(graph, "Owns")) == 1
    assert graph.schema().digest == graph.schema("side").digest
    assert graph.merge("side").outcome == "already_up_to_date"
    graph.branches.delete("side", force=True)
    assert set(entities(graph, "Pet")) == {"rex"}
    with graph.write() as w:
        w.update("Person", "cy", {"score": 1.0})
        w.insert("Pet", {"name": "tom"})
    assert set(entities(graph, "Pet")) == {"rex", "tom"}


def test_a_schema_that_only_the_target_changed_stays(graph: Graph) -> None:
    graph.apply_schema(
        edit(
            ("age: I32?", "age: I64?\n  score: I32"),
            ("email: String?", 'mail: String? @rename_from("email")'),
        ),
        backfill={"Person.score": 7},
    )
    update(graph, "side", "ana", email="side@x")
    with graph.write("side") as w:
        w.insert("Person", {"name": "dee", "age": 5})
    update(graph, "main", "bo", mail="main@x")
    graph.merge("side")
    found = entities(graph, "Person")
    assert found["ana"] == {"age": 30, "mail": "side@x", "name": "ana", "score": 7}
    assert found["dee"] == {"age": 5, "mail": None, "name": "dee", "score": 7}
    assert found["bo"]["mail"] == "main@x"


def test_both_changed_an_entity_under_different_schemas(graph: Graph) -> None:
    graph.apply_schema(edit(("email: String?", 'mail: String? @rename_from("email")')))
    update(graph, "side", "ana", email="side@x")
    update(graph, "main", "ana", age=31)
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("side", level="entity")
    assert [c["entity_id"] for c in refused.value.details["merge_conflicts"]] == ["ana"]
    (change,) = graph.merge("side", dry_run=True).changes
    assert change.after == {"properties": {"age": 31, "mail": "side@x", "name": "ana"}}
    graph.merge("side")
    assert entities(graph, "Person")["ana"] == {"age": 31, "mail": "side@x", "name": "ana"}


def test_a_wider_number_alone_is_no_change_of_an_entity(graph: Graph) -> None:
    graph.apply_schema(edit(("age: I32?", "age: I64?"), ("since: I32?", "since: I64?")))
    update(graph, "side", "ana", email="side@x")
    graph.merge("side")
    graph.merge("main", "side")
    assert entities(graph, "Person", "side") == entities(graph, "Person")


def test_both_changed_the_schema_and_it_goes_together(graph: Graph) -> None:
    graph.apply_schema(
        edit(
            ("age: I32?", "age: I64? @unique\n  a: I32"),
            ("node City", 'node Town @rename_from("City")'),
            ("-> City", "-> Town"),
        )
        + "edge Likes: Person -> Town\n",
        backfill={"Person.a": 1},
    )
    graph.apply_schema(
        edit(
            ("age: I32?", "age: I32?\n  b: String"),
            ("email: String?", 'mail: String? @rename_from("email")'),
            ("since: I32?", 'since: I32?\n  why: String? @description("because")'),
        )
        + "node Pet { name: String @key }\nedge Sees: Pet -> City @card(0..3)\n",
        branch="side",
        backfill={"Person.b": "x"},
    )
    with graph.write("side") as w:
        w.update("Person", "ana", {"b": "y", "mail": "side@x"})
        w.insert("Pet", {"name": "rex"})
        w.insert_edge("Sees", "rex", "Oslo")
    update(graph, "main", "bo", a=2)
    assert graph.merge("side", dry_run=True).conflicts == ()
    graph.merge("side")
    schema = graph.schema()
    assert set(schema.nodes) == {"Person", "Town", "Pet"}
    assert schema.edges["Sees"].target == "Town"
    assert str(schema.edges["Sees"].cardinality) == "0..3"
    assert schema.nodes["Person"].unique == (("age",),)
    found = entities(graph, "Person")
    assert found["ana"] == {"a": 1, "age": 30, "b": "y", "mail": "side@x", "name": "ana"}
    assert found["bo"] == {"a": 2, "age": 41, "b": "x", "mail": "bo@x", "name": "bo"}
    assert len(entities(graph, "Sees")) == 1
    graph.merge("main", "side")
    assert entities(graph, "Person", "side") == found
    assert graph.schema("side").digest == schema.digest


CLASHES = {
    "one name for two properties": (
        ("age: I32?", "age: I32?\n  a: I32?"),
        ("age: I32?", "age: I32?\n  a: String?"),
        "node:Person.a is a different property on each side",
    ),
    "two names for one property": (
        ("email: String?", 'mail: String? @rename_from("email")'),
        ("email: String?", 'post: String? @rename_from("email")'),
        "both sides changed its name",
    ),
    "dropped and changed": (
        ("  age: I32?\n", ""),
        ("age: I32?", "age: I64?"),
        "node:Person.age: one side dropped it, the other changed it",
    ),
    "one name for two types": (
        ("node City", "node Pet {}\nnode City"),
        ("node City", "node Pet { n: I32? }\nnode City"),
        "node:Pet is a different type on each side",
    ),
}


@pytest.mark.parametrize("clash", CLASHES.values(), ids=CLASHES.keys())
def test_both_changed_the_schema_and_it_does_not_go_together(
    graph: Graph, clash: tuple[tuple[str, str], tuple[str, str], str]
) -> None:
    graph.apply_schema(edit(clash[0]))
    graph.apply_schema(edit(clash[1]), branch="side")
    with pytest.raises(SchemasDiffer) as refused:
        graph.merge("side")
    assert any(clash[2] in reason for reason in refused.value.details["conflicts"])
    assert refused.value.details["source"]


def test_a_dropped_type_and_its_changed_entities_are_a_conflict(graph: Graph) -> None:
    text = TEXT[: TEXT.index("node City")]
    graph.apply_schema(text, branch="side")
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    for source, target in (("side", "main"), ("main", "side")):
        with pytest.raises(MergeConflicts, match="cannot be merged") as refused:
            graph.merge(source, target)
        (conflict,) = refused.value.details["merge_conflicts"]
        assert (conflict["type_name"], conflict["kind"]) == ("City", "delete_vs_update")
        assert graph.merge(source, target, dry_run=True).conflicts


def test_a_type_that_nobody_changed_is_dropped_by_a_merge(graph: Graph) -> None:
    graph.apply_schema(TEXT[: TEXT.index("node City")], branch="side")
    update(graph, "main", "ana", age=1)
    graph.merge("side")
    assert set(graph.snapshot().pins) == {"node:Person"}


def test_stricter_rules_bind_the_targets_own_entities(graph: Graph) -> None:
    update(graph, "side", "cy", age=3)
    graph.apply_schema(edit(("age: I32?", "age: I32 @unique")), branch="side")
    with graph.write() as w:
        w.insert("Person", {"name": "dee", "age": 41})
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("side")
    conflicts = refused.value.details["merge_conflicts"]
    assert [(c["entity_id"], c["kind"]) for c in conflicts] == [("dee", "unique_violation")]
    update(graph, "main", "dee", age=42)
    graph.merge("side")
    assert entities(graph, "Person")["cy"]["age"] == 3


def test_undoing_across_a_schema_change(graph: Graph) -> None:
    update(graph, "main", "ana", age=99)
    changed = graph.snapshot().commit_id
    graph.apply_schema(edit(("email: String?", 'mail: String? @rename_from("email")')))
    applied = graph.snapshot().commit_id
    graph.revert(changed)
    assert entities(graph, "Person")["ana"]["age"] == 30
    graph.restore(changed, {"node:Person": ["ana"]})
    assert entities(graph, "Person")["ana"] == {"age": 99, "mail": "ana@x", "name": "ana"}
    with pytest.raises(SchemasDiffer):
        graph.revert(applied)


def test_a_dropped_type_is_not_restored_entity_by_entity(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    graph.apply_schema(TEXT[: TEXT.index("node City")])
    with pytest.raises(SchemasDiffer, match="dropped"):
        graph.restore(before, {"node:City": None})


def test_a_reset_brings_the_schema_back_too(graph: Graph) -> None:
    before = graph.snapshot("side").commit_id
    graph.apply_schema(
        TEXT[: TEXT.index("node City")].replace("age: I32?", "age: I64?") + "node Pet {}\n",
        branch="side",
    )
    update(graph, "side", "ana", age=2**40)
    graph.reset(before, "side")
    assert graph.schema("side").source == TEXT
    assert set(graph.snapshot("side").pins) == {"node:Person", "node:City", "edge:LivesIn"}
    assert entities(graph, "Person", "side") == entities(graph, "Person")
    update(graph, "side", "ana", age=31)
    assert entities(graph, "Person", "side")["ana"]["age"] == 31
