"""Awkward names in the query language: properties, types, edges, variables, parameters, aliases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.engine import ReadOptions
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.lint import SchemaOrigin, lint_queries
from omnigraph.lang.schema import EdgeType, NodeType, Property
from tests.awkward.names import (
    FULL,
    KEYED,
    LINK,
    Record,
    edge_names,
    records,
    schema,
    thinned,
    type_names,
)

RECORDS = records()


def stored(owner: NodeType | EdgeType) -> dict[str, Record]:
    """The data of all nodes of a type by id, or of all edges of a type by the id of their source:
    there is one edge for each of them."""
    if isinstance(owner, EdgeType):
        return {r["from"]: r["data"] for r in RECORDS if r.get("edge") == owner.name}
    return {r["data"]["id"]: r["data"] for r in RECORDS if r.get("type") == owner.name}


def wide(*chosen: str) -> Iterator[tuple[NodeType | EdgeType, str, Property]]:
    """Every property of the chosen wide types, and some of the other one's."""
    for key in (f"node:{KEYED}", f"edge:{LINK}"):
        owner = schema().type(key)
        for word in owner.properties if key in chosen else thinned(owner.properties):
            yield owner, word, owner.properties[word]


def some_value(owner: NodeType | EdgeType, word: str) -> tuple[Any, list[str]]:
    """A value of a property, and the ids of those that have it."""
    accept = owner.properties[word].type.accept
    rows = {id: row[word] for id, row in stored(owner).items() if row.get(word) is not None}
    given = next(iter(rows.values()))
    return given, sorted(id for id, value in rows.items() if accept(value) == accept(given))


def binding(owner: NodeType | EdgeType, variable: str, inside: str = "") -> tuple[str, str]:
    """The clause that binds a variable to entities of a type, and the node that tells them apart:
    the node itself, or the source of the edge."""
    if isinstance(owner, NodeType):
        return f"${variable}: {owner.name}{inside}", f"${variable}"
    return f"$near_end ${variable}:{owner.name[0].lower()}{owner.name[1:]} $far_end", "$near_end"


def test_every_property_is_matched_filtered_ordered_and_returned(still: Graph) -> None:
    """The query, its variable and the alias of its column have the same name, too."""
    for owner, word, item in wide(f"node:{KEYED}"):
        if not item.type.is_single:
            continue
        given, ids = some_value(owner, word)
        x = "x" if word == "_" else word  # `$_` stands for anything
        match, node = binding(owner, x, f" {{ {word}: $p }}")
        text = f"""query {word}($p: {item.type.required()}) {{
          match {{
            {match}
            ${x}.{word} = $p
          }}
          return {{ ${x}.{word} as {word}, {node} as whole_ }}
          order {{ {word} desc }}
        }}"""
        found = still.query(text, params={"p": given}).rows()
        assert sorted(row["whole_"]["id"] for row in found) == ids, (owner.key, word)
        for row in found:
            assert item.type.accept(row[word]) == item.type.accept(given)
            if isinstance(owner, NodeType):
                assert set(row["whole_"]) == {"id", *owner.properties}
                assert same(owner, row["whole_"], stored(owner)[row["whole_"]["id"]])


def test_a_parameter_may_have_every_name(still: Graph) -> None:
    for owner, word, item in wide():
        if item.type.is_single and word != "_":
            given, ids = some_value(owner, word)
            match, node = binding(owner, "x")
            text = f"""query {word}(${word}: {item.type.required()}) {{
              match {{
                {match}
                $x.{word} = ${word}
              }}
              return {{ {node} as x, ${word} }}
            }}"""
            found = still.query(text, params={word: given}).rows()
            assert sorted(row["x"]["id"] for row in found) == ids, (owner.key, word)
            assert {item.type.accept(row[word]) for row in found} == {item.type.accept(given)}


def same(owner: NodeType, shown: Record, given: Record) -> bool:
    """Whether a whole entity of an answer is the one that was loaded."""
    return all(
        (shown[name] is None and given.get(name) is None)
        or item.type.accept(shown[name]) == item.type.accept(given[name])
        for name, item in owner.properties.items()
    )


def test_every_property_is_grouped_and_counted(still: Graph) -> None:
    for owner, word, item in wide():
        if not item.type.is_single:
            continue
        match, node = binding(owner, "x")
        text = f"""query q() {{
          match {{ {match} }}
          return {{ $x.{word}, count({node}) as {word}, count($x.{word}) as how_many }}
          order {{ $x.{word} }}
        }}"""
        rows = still.query(text).rows()
        values = [row.get(word) for row in stored(owner).values()]
        assert sum(row[word] for row in rows) == len(values), (owner.key, word)
        assert sum(row["how_many"] for row in rows) == sum(v is not None for v in values)
        assert len(rows) == len({None if v is None else item.type.accept(v) for v in values})


def test_lists_are_searched_by_item(still: Graph) -> None:
    for owner, word, item in wide():
        if not item.type.is_list:
            continue
        given, ids = some_value(owner, word)
        kind = str(item.type.required())[1:-1]
        match, node = binding(owner, "x")
        text = f"""query q($p: {kind}) {{
          match {{
            {match}
            $x.{word} contains $p
          }}
          return {{ {node} as x }}
        }}"""
        found = still.query(text, params={"p": given[0]}).rows()
        assert sorted(row["x"]["id"] for row in found) == ids, (owner.key, word)


def test_every_type_is_found_and_every_edge_is_followed(still: Graph) -> None:
    accepted = schema()
    for name, word in type_names().items():
        text = f"query q() {{ match {{ $x: {name} }} return {{ $x.{word} as {word}, $x as id }} }}"
        rows = still.query(text).rows()
        assert {row["id"]["id"]: row[word] for row in rows} == {
            id: row[word] for id, row in stored(accepted.nodes[name]).items()
        }
    for name in edge_names():
        edge, word = accepted.edges[name], name[0].lower() + name[1:]
        pairs = {(r["from"], r["to"]) for r in RECORDS if r.get("edge") == name}
        plain = f'"{word}"' if word in ("in", "and", "or") else word
        for step in (plain, f"{word.lower()}{{1,2}}", f"$e:{word}"):
            if FULL or step == plain or name in edge_names()[:4]:
                text = f"""query q() {{
                  match {{
                    $x: {edge.source}
                    $x {step} $y
                  }}
                  return {{ $x as x, $y as y }}
                }}"""
                found = {(row["x"]["id"], row["y"]["id"]) for row in still.query(text)}
                assert found == pairs, (name, step)


def test_explain_lint_and_fmt_take_every_name(still: Graph) -> None:
    accepted = schema()
    for owner, word, item in wide():
        if not item.type.is_single or word == "_":
            continue
        match, _ = binding(owner, "x")
        text = f"""query {word}(${word}: {item.type.required()}) {{
          match {{
            {match}
            $x.{word} = ${word}
          }}
          return {{ $x.{word} as {word} }}
          order {{ {word} }}
          limit 3
        }}"""
        laid_out = format_queries(text)
        assert format_queries(laid_out) == laid_out
        report = lint_queries(laid_out, accepted, SchemaOrigin("file", "x.pg"))
        assert report.errors == 0, word
        assert word in str(still.explain(laid_out).to_json())


@pytest.mark.parametrize("word", ["_score", "score", "_rowid_"])
def test_texts_are_searched(still: Graph, word: str) -> None:
    rows = {id: row.get(word) for id, row in stored(schema().nodes["Found"]).items()}
    wanted = sorted(id for id, text in rows.items() if text is not None and "from" in text)
    text = f"""query q() {{
      match {{
        $_score: Found
        search($_score.{word}, "from")
      }}
      return {{ $_score as {word} }}
      order {{ bm25($_score.{word}, "from") desc }}
      limit 9
    }}"""
    found = still.query(text).rows()
    assert sorted(row[word]["id"] for row in found) == wanted


@pytest.mark.parametrize("word", ["_distance", "distance"])
@pytest.mark.parametrize("nearest", ["exact", "indexed"])
def test_vectors_are_searched(tmp_path: Path, word: str, nearest: str) -> None:
    """Lance calls its own column `_distance`; a vector search through an index adds it."""
    graph = omnigraph.init(
        tmp_path / "g",
        "node Found { k: String @key\n"
        " _distance: Vector(2)? @index @vector(l2, partitions=4)\n"
        " distance: Vector(2)? @index @vector(l2, partitions=4) }",
    )
    rows = [{"k": str(n), "_distance": [n, 1.0], "distance": [n, 1.0]} for n in range(600)]
    graph.load(rows, mode="append", type="Found")
    graph.maintenance.build_indexes()
    text = f"""query q($v: Vector(2)) {{
      match {{ $_distance: Found }}
      return {{ $_distance.k as k, nearest($_distance.{word}, $v) as _distance }}
      order {{ nearest($_distance.{word}, $v) }}
      limit 3
    }}"""
    options = ReadOptions(nearest=nearest)  # type: ignore[arg-type]
    found = graph.query(text, params={"v": [7.0, 1.0]}, options=options).rows()
    assert found[0] == {"k": "7", "_distance": 0.0}
    assert {row["k"] for row in found[1:]} == {"6", "8"}
