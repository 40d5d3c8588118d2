"""Bloom filters of the ids in a load: no false negatives; a merge moves only what it touches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.inline_tasks import InlineTasks, bulk_graph
from tests.support.stores import open_objects

import omnigraph
from omnigraph.bulk import deletion
from omnigraph.bulk.load import bloom_filter as filters
from omnigraph.bulk.load.bloom_filter import BloomFilterBuilder, merge_filters
from omnigraph.bulk.load.bucket_checks import CheckedBuckets
from omnigraph.bulk.load.shuffle import bucket_of, hash_of
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.store import ObjectStore

TYPES = frozenset({"node:A", "node:B"})


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return open_objects(parse_location(str(tmp_path)))


def test_merged_filters_have_no_false_negatives_and_few_false_positives(
    objects: ObjectStore,
) -> None:
    paths = []
    for part in range(3):
        builder = BloomFilterBuilder(TYPES)
        builder.add("node:A", pa.array([f"a{i}" for i in range(part, 30_000, 3)]))
        paths.append(builder.write(objects, "filters"))
    found = merge_filters(objects, paths, TYPES)
    assert found is not None
    mine = found.may_contain("node:A", pa.array([f"a{i}" for i in range(30_000)]))
    others = found.may_contain("node:A", pa.array([f"other{i}" for i in range(30_000)]))
    assert mine is not None
    assert mine.all()
    assert others is not None
    assert others.mean() < 0.01


def test_the_filter_of_a_type_without_ids_excludes_everything(objects: ObjectStore) -> None:
    found = merge_filters(objects, [BloomFilterBuilder(TYPES).write(objects, "filters")], TYPES)
    assert found is not None
    matches = found.may_contain("node:B", pa.array(["b"]))
    assert matches is not None
    assert not matches.any()
    assert found.may_contain("node:C", pa.array(["c"])) is None  # not a filtered type


def test_too_many_tasks_make_no_filter(
    objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "TASKS_MAX", 1)
    paths = [BloomFilterBuilder(TYPES).write(objects, "filters") for _ in range(2)]
    assert merge_filters(objects, paths, TYPES) is None
    assert merge_filters(objects, paths[:1], TYPES) is not None


def test_a_bucket_is_a_function_of_the_string_alone() -> None:
    names = pa.array(["", "a", "ab" * 40, "c"])
    assert bucket_of(names, 7).tolist() == (hash_of(names) % 7).tolist()
    assert bucket_of(names.slice(2), 7).tolist() == bucket_of(names, 7).tolist()[2:]


class _RecordingTasks(InlineTasks):
    """Records the results of every job."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}

    def run(
        self,
        name: str,
        function: Callable[[Any], Any],
        specs: Sequence[Any],
        *,
        light: bool = False,
    ) -> list[Any]:
        found = super().run(name, function, specs, light=light)
        self.results.setdefault(name, []).extend(found)
        return found


@pytest.mark.parametrize("deleted_by", ["driver", "tasks"])
def test_a_keyed_merge_shuffles_no_rows_and_checks_nothing_by_value(
    deleted_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if deleted_by == "tasks":
        monkeypatch.setattr(deletion, "DRIVER_ROWS_MAX", 0)
    graph = omnigraph.init(tmp_path / "g", "node P { name: String @key  age: I32? }")
    graph.load(_people(range(300), 1), mode="append", engine="local")
    tasks = _RecordingTasks()
    result = bulk_graph(graph, tasks).load(_people(range(290, 310), 2), mode="merge")
    assert result.commit is not None
    assert "checking constraints" not in tasks.results
    assert ("removing replaced rows" in tasks.results) == (deleted_by == "tasks")
    checked: list[CheckedBuckets] = tasks.results["checking ids"]
    assert not any(merged.fragments for found in checked for merged in found.merged.values())
    counts = omnigraph.open(tmp_path / "g").query(
        "query q() { match { $p: P } return { $p.age as age, count($p) as n } }"
    )
    assert sorted((row["age"], row["n"]) for row in counts) == [(1, 290), (2, 20)]


def _people(numbers: range, age: int) -> bytes:
    lines = [f'{{"type":"P","data":{{"name":"p{i}","age":{age}}}}}' for i in numbers]
    return "\n".join(lines).encode()
