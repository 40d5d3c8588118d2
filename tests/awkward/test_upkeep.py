"""Awkward names in changes of the schema and in upkeep: nothing of the content changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.lang.schema import format_schema
from tests.awkward.names import (
    EXPECTED,
    KEYED,
    LINK,
    LONG_TYPE,
    exported,
    legal,
    schema,
    schema_text,
    thinned,
)

Fresh = Callable[[str], Graph]


def test_the_schema_is_laid_out_and_stays_the_same(still: Graph) -> None:
    laid_out = format_schema(schema_text())
    assert format_schema(laid_out) == laid_out
    assert still.plan_schema(laid_out).steps == ()


def test_upkeep_changes_nothing_and_finds_nothing(graph: Graph, tmp_path: Path) -> None:
    indexes = graph.maintenance.build_indexes()
    assert [i for i in indexes if i.state in ("missing", "behind")] == []
    graph.maintenance.optimize()
    graph.maintenance.cleanup(keep=1, older_than=timedelta(0), confirm=True)
    assert graph.maintenance.check().findings == []
    graph.maintenance.backup(tmp_path / "backup")
    graph.maintenance.clone(tmp_path / "clone")
    for where in (graph.uri, tmp_path / "backup", tmp_path / "clone"):
        assert exported(omnigraph.open(where, read_only=True)) == EXPECTED
    graph.maintenance.drop_indexes("node:Pair", "node")
    assert exported(graph) == EXPECTED


def test_fsck_counts_values_of_a_property_called_like_a_count(tmp_path: Path) -> None:
    """The counts of Arrow are a column called `count_all`."""
    graph = omnigraph.init(
        tmp_path / "g", "node T { k: String @key\n count_all: String? @unique\n x: I32? }"
    )
    with graph.write() as batch:
        batch.insert("T", {"k": "a", "count_all": "z"})
    assert graph.maintenance.check().findings == []


@pytest.mark.parametrize("place", [("node", "Pair"), ("edge", LINK), ("node", LONG_TYPE)])
def test_a_purge_takes_one_entity(graph: Graph, place: tuple[str, str]) -> None:
    kind, name = place
    id = next(i for key, i in EXPECTED if key == f"{kind}:{name}")
    graph.maintenance.purge(kind, name, id, confirm=True)
    left = exported(graph)
    assert (f"{kind}:{name}", id) not in left
    assert left.items() <= EXPECTED.items()


def test_every_property_is_renamed_and_renamed_back(graph: Graph) -> None:
    """Renames in a circle: every word becomes the name of its neighbour."""
    words = [word for word in legal("node") if word != "every"]
    there = {word: f"{word[:180]}_{number}" for number, word in enumerate(words)}
    graph.apply_schema(schema_text(there))
    id = next(i for key, i in EXPECTED if key == f"node:{KEYED}")
    renamed = graph.entity(f"node:{KEYED}", id)
    assert set(renamed) == {"id", "every", *there.values()}
    neighbours = dict(zip(words, (*words[1:], words[0]), strict=True))
    hints = "\n".join(
        f'  {neighbours[w]}: {schema().nodes[KEYED].properties[w].type} @rename_from("{there[w]}")'
        for w in words
    )
    text = schema_text()
    begin = text.index(f"node {KEYED} {{")
    end = text.index("}", begin)
    graph.apply_schema(
        f"{text[:begin]}node {KEYED} {{\n  every: String @key\n{hints}\n{text[end:]}"
    )
    turned = graph.entity(f"node:{KEYED}", id)
    assert {neighbours[w]: renamed[there[w]] for w in words} == {
        n: v for n, v in turned.items() if n not in ("id", "every")
    }
    assert graph.maintenance.check().findings == []


def test_properties_and_types_are_dropped_and_brought_back(graph: Graph) -> None:
    """Of a full run all words; otherwise some of them, and the types without edges."""
    words = [word for word in thinned(schema().nodes[KEYED].properties) if word != "every"]
    text = schema_text()
    begin = text.index(f"node {KEYED} {{")
    end = text.index("}", begin)
    kept = [
        line for line in text[begin:end].splitlines() if line.partition(":")[0].strip() not in words
    ]
    found = text.index("node Found {")
    bare = (
        text[:begin] + "\n".join(kept) + "\n" + text[end:found] + text[text.index("}", found) + 1 :]
    )
    graph.apply_schema(bare)
    id = next(i for key, i in EXPECTED if key == f"node:{KEYED}")
    assert not set(graph.entity(f"node:{KEYED}", id)) & set(words)
    graph.apply_schema(text, undrop=["Found", *(f"{KEYED}.{word}" for word in words)])
    assert exported(graph) == EXPECTED


def test_new_properties_get_values_of_others(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node T { k: String @key\n src: String?\n from: I32 }")
    with graph.write() as batch:
        batch.insert("T", {"k": "a", "src": "x", "from": 2})
    graph.apply_schema(
        "node T { k: String @key\n src: String?\n from: I32\n"
        " dst: String?\n to: I64\n select: String }",
        compute={"T.dst": 'src + "!" + k', "T.to": "from * 3"},
        backfill={"T.select": "s"},
    )
    found = graph.entity("node:T", "a")
    assert (found["dst"], found["to"], found["select"], found["src"]) == ("x!a", 6, "s", "x")


@pytest.mark.parametrize("word", ["src", "dst", "type", "rank", "own", "block", "weight", "_id"])
def test_an_analysis_reads_weights_and_writes_ranks_of_any_name(tmp_path: Path, word: str) -> None:
    graph = omnigraph.init(
        tmp_path / "g",
        f"node T {{ k: String @key\n {word}: F64?\n other_rank: F64? }}\n"
        f"edge E: T -> T {{ {'w_' if word in ('src', 'dst') else ''}{word}: F64\n plain: F64 }}",
    )
    weight = f"w_{word}" if word in ("src", "dst") else word
    with graph.write() as batch:
        ids = [batch.insert("T", {"k": name}) for name in "abc"]
        for at, (one, two) in enumerate(((0, 1), (1, 2), (2, 0), (0, 2))):
            batch.insert_edge("E", ids[one], ids[two], {weight: at + 1.0, "plain": at + 1.0})
    with graph.spark.analyze("pagerank", weight=weight) as found:
        found.write(word)
        ranks = {row["id"]: row["rank"] for row in found.top()}
    with graph.spark.analyze("pagerank", weight="plain") as found:
        found.write("other_rank")
    for id in ids:
        node = graph.entity("node:T", id)
        assert node[word] == node["other_rank"] == ranks[id]
