"""Composite keys whose members were renamed: what was exported is loaded again, in any graph."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.support.inline_tasks import bulk_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.ingest.key_order import as_given, as_stored

OLD = """
node Room { a: String
 b: I32
 @key(a, b) }
edge Door: Room -> Room { n: I32? }
"""
NEW = """
node Room { z: String @rename_from("a")
 b: I32
 @key(z, b) }
edge Door: Room -> Room { n: I32? }
"""


def rooms(where: Path) -> Graph:
    """Rooms and doors whose ids begin with what is called `z` now, because it was called `a`."""
    graph = omnigraph.init(where, OLD)
    with graph.write() as batch:
        ids = [batch.insert("Room", {"a": a, "b": b}) for a, b in (("1", 2), ("2", 1), ("x", 7))]
        for n, (one, two) in enumerate(((0, 1), (1, 2), (2, 0), (0, 0))):
            batch.insert_edge("Door", ids[one], ids[two], {"n": n})
    graph.apply_schema(NEW)
    return graph


def facts(graph: Graph) -> tuple[set[Any], set[Any]]:
    """Nodes and edges by what the key holds, whatever the ids look like."""
    lines = [json.loads(line) for line in b"".join(graph.export()).splitlines()]
    nodes = {r["data"]["id"]: (r["data"]["z"], r["data"]["b"]) for r in lines if "type" in r}
    edges = {(nodes[r["from"]], nodes[r["to"]], r["data"]["n"]) for r in lines if "edge" in r}
    return set(nodes.values()), edges


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("strict", [True, False])
def test_an_export_loads_into_a_graph_with_another_order(
    tmp_path: Path, mode: str, strict: bool
) -> None:
    old, new = rooms(tmp_path / "old"), omnigraph.init(tmp_path / "new", NEW)
    data = b"".join(old.export())
    new.load(data, mode=mode, format="ndjson", strict=strict)  # type: ignore[arg-type]
    assert facts(new) == facts(old)
    assert b"".join(new.export()) != data  # the order of the new names
    assert old.maintenance.check().healthy
    # ... and back again, where the ids are those that it began with.
    old.load(b"".join(new.export()), mode="merge", format="ndjson")
    assert b"".join(old.export()) == data


def test_a_backup_and_a_clone_keep_the_order(tmp_path: Path) -> None:
    old = rooms(tmp_path / "old")
    old.maintenance.backup(tmp_path / "backup")
    old.maintenance.clone(tmp_path / "clone")
    data = b"".join(old.export())
    for name in ("backup", "clone"):
        assert b"".join(omnigraph.open(tmp_path / name, read_only=True).export()) == data
    omnigraph.open(tmp_path / "clone").load(data, mode="merge", format="ndjson")
    assert b"".join(omnigraph.open(tmp_path / "clone").export()) == data


def test_a_load_in_parts_agrees_on_one_order(tmp_path: Path) -> None:
    """Edges and nodes are in different files, which different tasks read."""
    old = rooms(tmp_path / "old")
    lines = b"".join(old.export()).splitlines(keepends=True)
    (tmp_path / "parts").mkdir()
    for number, line in enumerate(lines):  # edges come first
        (tmp_path / "parts" / f"{number}.jsonl").write_bytes(line)
    new = omnigraph.init(tmp_path / "new", NEW)
    bulk_graph(new).load(str(tmp_path / "parts"), mode="append")
    assert facts(new) == facts(old)
    assert new.maintenance.check().healthy


def room(id: list[str], z: str, b: int) -> dict[str, Any]:
    return {"type": "Room", "data": {"id": json.dumps(id, separators=(",", ":")), "z": z, "b": b}}


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize(
    "records",
    [
        pytest.param([room(["x", "1"], "x", 1), room(["2", "y"], "y", 2)], id="mixed"),
        pytest.param([room(["x", "3"], "x", 1)], id="another value"),
        pytest.param([room(["x"], "x", 1)], id="too few"),
        pytest.param([room(["x", "1", "1"], "x", 1)], id="too many"),
    ],
)
def test_ids_that_no_single_order_explains_are_refused(
    tmp_path: Path, records: list[dict[str, Any]], bulk: bool
) -> None:
    graph = omnigraph.init(tmp_path / "g", NEW)
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    target = bulk_graph(graph) if bulk else graph
    with pytest.raises(InvalidData) as refused:
        target.load(data, mode="append", format="ndjson")
    assert {violation["rule"] for violation in refused.value.violations} == {"key"}


@pytest.mark.parametrize("bulk", [False, True])
def test_an_order_that_is_not_clear_is_refused(tmp_path: Path, bulk: bool) -> None:
    """Two orders make `["x","x","1"]` of (1, x, x), and mean different ends of other edges."""
    graph = omnigraph.init(
        tmp_path / "g", "node T { a: I32\n b: String\n c: String\n @key(a, b, c) }"
    )
    record = {"type": "T", "data": {"id": '["x","x","1"]', "a": 1, "b": "x", "c": "x"}}
    target = bulk_graph(graph) if bulk else graph
    with pytest.raises(InvalidData, match="ambiguous order"):
        target.load((json.dumps(record) + "\n").encode(), mode="append", format="ndjson")


def test_every_order_is_undone() -> None:
    import pyarrow as pa

    chance = random.Random(7)
    for size in (2, 3, 4, 5):
        for order in permutations(range(size)):
            members = [chance.choice(["x", "", "é", '"', "1"]) for _ in range(size)]
            ids = pa.array([json.dumps(members, ensure_ascii=False, separators=(",", ":"))])
            assert as_stored(as_given(ids, order), order).equals(ids)


@pytest.mark.parametrize("seed", range(6))
def test_random_renames_of_random_keys_load_again(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    size = chance.randint(2, 4)
    names = chance.sample("abcdefgh", size)
    fresh = chance.sample("stuvwxyz", size)
    kinds = [chance.choice(["String", "I32", "Bool", "Date"]) for _ in names]

    def text(called: list[str], hints: list[str] | None = None) -> str:
        marks = [f' @rename_from("{old}")' for old in hints] if hints else [""] * size
        body = "\n".join(
            f"{name}: {kind}{mark}" for name, kind, mark in zip(called, kinds, marks, strict=True)
        )
        return f"node T {{ {body}\n @key({', '.join(called)}) }}\nedge E: T -> T\n"

    values = {
        "String": lambda: chance.choice(["x", "y", "1", "true"]),
        "I32": lambda: chance.randint(0, 3),
        "Bool": lambda: chance.random() < 0.5,
        "Date": lambda: f"2020-01-0{chance.randint(1, 4)}",
    }
    graph = omnigraph.init(tmp_path / "g", text(names))
    rows = {tuple(values[kind]() for kind in kinds) for _ in range(12)}
    with graph.write() as batch:
        ids = [
            batch.insert("T", dict(zip(names, row, strict=True))) for row in sorted(rows, key=repr)
        ]
        for one, two in zip(ids, ids[1:] + ids[:1], strict=True):
            batch.insert_edge("E", one, two)
    graph.apply_schema(text(fresh, names))
    again = omnigraph.init(tmp_path / "again", text(fresh))
    again.load(b"".join(graph.export()), mode="append", format="ndjson")

    def shape(found: Graph) -> set[Any]:
        lines = [json.loads(line) for line in b"".join(found.export()).splitlines()]
        nodes = {
            r["data"]["id"]: tuple(r["data"][name] for name in fresh) for r in lines if "type" in r
        }
        edges = {(nodes[r["from"]], nodes[r["to"]]) for r in lines if "edge" in r}
        return edges | set(nodes.values())

    assert shape(again) == shape(graph)
    assert again.maintenance.check().healthy
