"""The filters that say which stored ids a load may ask for, and what a merge does with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.inline_tasks import BulkGraph, InlineTasks

import omnigraph
from omnigraph.spark import deletion
from omnigraph.spark.load import bloom_filter as filters
from omnigraph.spark.load.bloom_filter import Asking, join_asked
from omnigraph.spark.load.check import Checked
from omnigraph.spark.load.shuffle import bucket_of, hash_of
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore

TYPES = frozenset({"node:A", "node:B"})


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return open_objects(parse_location(str(tmp_path)))


def test_what_any_task_asked_for_is_never_left_out_and_most_else_is(objects: ObjectStore) -> None:
    paths = []
    for part in range(3):
        asking = Asking(TYPES)
        asking.note("node:A", pa.array([f"a{i}" for i in range(part, 30_000, 3)]))
        paths.append(asking.write(objects, "asked"))
    found = join_asked(objects, paths, TYPES)
    assert found is not None
    mine = found.may_be("node:A", pa.array([f"a{i}" for i in range(30_000)]))
    others = found.may_be("node:A", pa.array([f"other{i}" for i in range(30_000)]))
    assert mine is not None
    assert mine.all()
    assert others is not None
    assert others.mean() < 0.01


def test_a_type_that_nobody_asks_for_lets_nothing_through(objects: ObjectStore) -> None:
    found = join_asked(objects, [Asking(TYPES).write(objects, "asked")], TYPES)
    assert found is not None
    asked_for = found.may_be("node:B", pa.array(["b"]))
    assert asked_for is not None
    assert not asked_for.any()
    assert found.may_be("node:C", pa.array(["c"])) is None  # had no rows when reading began


def test_too_many_tasks_make_no_filter(
    objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "TASKS_MAX", 1)
    paths = [Asking(TYPES).write(objects, "asked") for _ in range(2)]
    assert join_asked(objects, paths, TYPES) is None
    assert join_asked(objects, paths[:1], TYPES) is not None


def test_a_bucket_is_a_function_of_the_string_alone() -> None:
    names = pa.array(["", "a", "ab" * 40, "c"])
    assert bucket_of(names, 7).tolist() == (hash_of(names) % 7).tolist()
    assert bucket_of(names.slice(2), 7).tolist() == bucket_of(names, 7).tolist()[2:]


class _Remembering(InlineTasks):
    """Remembers the answers of everything that was run."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def run(
        self,
        name: str,
        function: Callable[[Any], Any],
        specs: Sequence[Any],
        *,
        light: bool = False,
    ) -> list[Any]:
        found = super().run(name, function, specs, light=light)
        self.answers.setdefault(name, []).extend(found)
        return found


@pytest.mark.parametrize("deleted_by", ["driver", "tasks"])
def test_a_keyed_merge_moves_no_rows_and_asks_nothing_by_value(
    deleted_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if deleted_by == "tasks":
        monkeypatch.setattr(deletion, "DRIVER_ROWS_MAX", 0)
    graph = omnigraph.init(tmp_path / "g", "node P { name: String @key  age: I32? }")
    graph.load(_people(range(300), 1), mode="append", engine="local")
    tasks = _Remembering()
    result = BulkGraph.of(graph, tasks).load(_people(range(290, 310), 2), mode="merge")
    assert result.commit is not None
    assert "checking constraints" not in tasks.answers
    assert ("removing replaced rows" in tasks.answers) == (deleted_by == "tasks")
    checked: list[Checked] = tasks.answers["checking ids"]
    assert not any(merged.fragments for found in checked for merged in found.merged.values())
    counts = omnigraph.open(tmp_path / "g").query(
        "query q() { match { $p: P } return { $p.age as age, count($p) as n } }"
    )
    assert sorted((row["age"], row["n"]) for row in counts) == [(1, 290), (2, 20)]


def _people(numbers: range, age: int) -> bytes:
    lines = [f'{{"type":"P","data":{{"name":"p{i}","age":{age}}}}}' for i in numbers]
    return "\n".join(lines).encode()
