"""Awkward names in writes: mutations on every property, and the endpoints of edges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.lang.schema import NodeType
from tests.awkward.names import (
    FULL,
    KEYED,
    LINK,
    as_ndjson,
    edge_names,
    exported,
    records,
    schema,
    thinned,
    value,
)

Fresh = Callable[[str], Graph]


LITERALS = ("true", "false", "null")
"""Words that a condition of a mutation cannot take for a property (T68)."""


def test_a_condition_on_every_property_updates_the_right_nodes(graph: Graph) -> None:
    """One commit: every property of the wide type is a condition, and is set."""
    owner = schema().nodes[KEYED]
    expected = exported(graph)
    lines, params = [], {}
    for number, word in enumerate(thinned(owner.properties)):
        if word == "every":
            continue
        item = owner.properties[word]
        rows = {id: row for (key, id), row in expected.items() if key == owner.key}
        condition, given = "every", "missing"
        if item.type.is_single and word not in LITERALS:
            given = next(row[word] for row in rows.values() if row[word] is not None)
            condition = word
            hit = {id for id, row in rows.items() if row[word] == given}
        else:
            given, hit = next((row["every"], {id}) for id, row in rows.items())
        new = value(item.type, number + 100)
        kind = owner.properties[condition].type.required()
        params |= {f"c{number}": owner.properties[condition].type.produce(given), f"n{number}": new}
        lines.append(
            (
                f"$c{number}: {kind}, $n{number}: {item.type.required()}",
                f"update {KEYED} set {{ {word}: $n{number} }} where {condition} = $c{number}",
            )
        )
        stored = item.type.accept(new)
        for id in hit:
            expected[owner.key, id] = {
                **expected[owner.key, id],
                word: tuple(stored) if isinstance(stored, list) else stored,
            }
    head = ", ".join(declared for declared, _ in lines)
    body = "\n".join(statement for _, statement in lines)
    graph.mutate(f"query q({head}) {{\n{body}\n}}", params=params)
    assert exported(graph) == expected


@pytest.mark.parametrize("key", [f"node:{KEYED}", f"edge:{LINK}"])
def test_a_condition_on_every_property_deletes_the_right_entities(fresh: Fresh, key: str) -> None:
    """Every entity has one property only. A condition on it that holds deletes this entity, one
    that does not hold deletes nothing: a condition that reads another column shows."""
    owner, graph = schema().type(key), fresh("g")
    kinds = {word: owner.properties[word].type for word in thinned(owner.properties)}
    skipped = ("every", *LITERALS)
    kinds = {word: kind for word, kind in kinds.items() if kind.is_single and word not in skipped}
    ends = [line for line in records(1) if line.get("type") in (KEYED, "Pair")]
    graph.load(as_ndjson(ends), mode="append", format="ndjson")
    if isinstance(owner, NodeType):
        graph.mutate(f'query q() {{ delete {KEYED} where every != "" }}')
    ids = {}
    with graph.write() as batch:
        for word, kind in kinds.items():
            if isinstance(owner, NodeType):
                ids[word] = batch.insert(KEYED, {"every": f"only {word}", word: value(kind, 7)})
            else:
                source, target = (line["data"]["id"] for line in ends)
                ids[word] = batch.insert_edge(LINK, source, target, {word: value(kind, 7)})
    before = exported(graph)
    params = {f"p{n}": value(kind, 7 + n % 2) for n, kind in enumerate(kinds.values())}
    head = ", ".join(f"$p{n}: {kind.required()}" for n, kind in enumerate(kinds.values()))
    body = "\n".join(f"delete {owner.name} where {w} = $p{n}" for n, w in enumerate(kinds))
    done = graph.mutate(f"query q({head}) {{\n{body}\n}}", params=params)
    gone = {(key, ids[word]) for number, word in enumerate(kinds) if number % 2 == 0}
    assert done.affected_nodes + done.affected_edges == len(gone)
    assert exported(graph) == {place: row for place, row in before.items() if place not in gone}


def test_edges_are_inserted_and_deleted_by_their_ends(graph: Graph) -> None:
    """`from` and `to` of a mutation are the ends of an edge, and properties of a node."""
    accepted, before = schema(), exported(graph)
    chosen = [name for name in edge_names() if name not in accepted.nodes]
    assert chosen  # where both exist, a mutation means the node type
    for name in chosen if FULL else chosen[:5]:
        edge = accepted.edges[name]
        (source, target) = next(
            (row["#from"], row["#to"]) for (key, _), row in before.items() if key == edge.key
        )
        text = f"query q($a: String, $b: String) {{ insert {name} {{ from: $a, to: $b }} }}"
        assert graph.mutate(text, params={"a": source, "b": target}).affected_edges == 1
        for word, end in (("from", source), ("to", target)):
            gone = graph.mutate(
                f"query q($x: String) {{ delete {name} where {word} = $x }}", params={"x": end}
            )
            assert gone.affected_edges == (2 if word == "from" else 0)


@pytest.mark.parametrize("word", ["src", "dst", "from", "to"])
def test_a_node_is_found_by_a_property_called_like_an_end(tmp_path: Path, word: str) -> None:
    """`where from` on a node type once read the column `src`, and deleted another node."""
    graph = omnigraph.init(
        tmp_path / "g",
        "node Hop { name: String @key\n"
        " src: String?\n dst: String?\n from: String?\n to: String? }",
    )
    others = {"src": "dst", "dst": "src", "from": "src", "to": "dst"}
    with graph.write() as batch:
        batch.insert("Hop", {"name": "wanted", word: "x"})
        batch.insert("Hop", {"name": "other", others[word]: "x"})
    done = graph.mutate(f'query q() {{ delete Hop where {word} = "x" }}')
    assert done.affected_nodes == 1
    assert [json.loads(line)["data"]["id"] for line in b"".join(graph.export()).splitlines()] == [
        "other"
    ]
