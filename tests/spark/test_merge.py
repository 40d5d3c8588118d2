"""Merges the bulk way beside merges in process: the same result, the same conflicts.

``OMNIGRAPH_TEST_BULK_MERGES`` raises the number of random merges.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.inline_tasks import BulkGraph
from tests.write.test_merge_conflicts import check_pair
from tests.write.test_merge_model import SCHEMA as MODEL_SCHEMA
from tests.write.test_merge_model import Scene, steps

import omnigraph
from omnigraph.errors import ConstraintViolation, InvalidInput, MergeConflicts
from omnigraph.graph.handle import Graph
from omnigraph.merge.engine import InProcess
from omnigraph.spark import engine as engines
from omnigraph.spark.merge import SparkMerge
from omnigraph.storage.objects.obstore_store import open_objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MERGES = int(os.environ.get("OMNIGRAPH_TEST_BULK_MERGES", "16"))
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  email: String? @unique
  note: Blob?
}
node City { name: String @key  size: I32? }
edge Knows: Person -> Person @card(0..2) { since: I32? }
edge LivesIn: Person -> City { since: I32? @unique }
"""
PEOPLE = [f"p{n}" for n in range(6)]
CITIES = ["oslo", "rome"]


def edited(graph: Graph, branch: str, rng: random.Random, edits: int) -> None:
    """Some writes to a branch, those that its rules refuse left out."""
    for number in range(edits):
        try:
            with graph.write(branch) as w:
                for _ in range(rng.randint(1, 2)):
                    _edit(w, rng, number)
        except ConstraintViolation:
            continue


def _edit(w: Any, rng: random.Random, number: int) -> None:
    what, person, city = rng.random(), rng.choice(PEOPLE), rng.choice(CITIES)
    if what < 0.4:
        email = rng.choice([None, f"{person}@x", f"e{rng.randint(0, 9)}"])
        note = rng.choice([None, b"one", b"two"])
        age = rng.randint(0, 2)
        w.replace("Person", {"name": person, "age": age, "email": email, "note": note})
    elif what < 0.5:
        w.delete("Person", person)
    elif what < 0.6:
        w.replace("City", {"name": city, "size": rng.randint(0, 1)})
    elif what < 0.65:
        w.delete("City", city)
    elif what < 0.9:
        w.insert_edge("Knows", person, rng.choice(PEOPLE), {"since": number})
    else:
        w.insert_edge("LivesIn", person, city, {"since": rng.randint(0, 4)})


def outcome(graph: Graph, options: dict[str, Any]) -> Any:
    """What a merge came to: its result and the whole content, or everything in its way."""
    head = graph.snapshot().commit_id
    try:
        result = graph.merge("dev", **options)
    except MergeConflicts as error:
        assert graph.snapshot().commit_id == head
        return error.conflicts
    changes = [(c.type_name, c.id, str(c.op), c.before, c.after) for c in graph.diff(head, "main")]
    return str(result.outcome), result.rows_written, b"".join(graph.export()), changes


def files(graph: Graph) -> set[str]:
    return {found.path for found in open_objects(graph._repository.location).list("")}


@pytest.mark.parametrize("seed", range(MERGES))
def test_a_random_merge_does_the_same_in_process_and_in_bulk(seed: int, tmp_path: Path) -> None:
    compare(seed, tmp_path, BulkGraph.of)


def compare(seed: int, folder: Path, other: Callable[[Graph], Graph]) -> None:
    rng = random.Random(seed)
    graph = omnigraph.init(folder / "one", SCHEMA)
    known = {"Person": PEOPLE, "City": CITIES}
    records = [{"type": t, "data": {"name": name}} for t, names in known.items() for name in names]
    graph.load(records, mode="append")
    edited(graph, "main", rng, 2)
    graph.create_branch("dev")
    edited(graph, "dev", rng, 4)
    edited(graph, "main", rng, rng.choice([0, 4, 4]))
    shutil.copytree(folder / "one", folder / "two")
    options: dict[str, Any] = {
        "level": rng.choice(["entity", "property"]),
        "strategy": rng.choice([None, None, "ours", "theirs"]),
    }
    expected = outcome(omnigraph.open(folder / "one"), options)
    assert outcome(other(omnigraph.open(folder / "two")), options) == expected


@pytest.mark.parametrize("seed", [101, 102])
def test_a_random_history_merged_in_bulk_agrees_with_the_model(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    graph = omnigraph.init(tmp_path / "g", MODEL_SCHEMA)
    monkeypatch.setattr(graph, "_merge_engine", BulkGraph.of(graph)._merge_engine)
    scene = Scene(graph, rng)
    scene.edit("main")
    for _ in steps(scene, rng):
        pass


@pytest.mark.parametrize("seed", range(MERGES // 4))
def test_a_report_of_a_merge_in_bulk_is_complete_and_can_be_decided(
    seed: int, tmp_path: Path
) -> None:
    check_pair(f"bulk/{seed}", tmp_path / "g", BulkGraph.of)


@pytest.mark.spark
def test_a_merge_on_spark_does_the_same_as_one_in_process(
    tmp_path: Path, spark: SparkSession
) -> None:
    class OnSpark(Graph):
        def merge(self, *arguments: Any, **options: Any) -> Any:
            return super().merge(*arguments, **options, engine="spark")

    compare(3, tmp_path, lambda graph: OnSpark(graph._repository))


def test_a_refused_merge_leaves_nothing_behind(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        w.insert("Person", {"name": "ana", "email": "a@x"})
    graph.create_branch("dev")
    for branch, name in (("dev", "bo"), ("main", "cy")):
        with graph.write(branch) as w:
            w.insert("Person", {"name": name, "email": "same@x"})
    before = files(graph)
    with pytest.raises(MergeConflicts) as refused:
        BulkGraph.of(graph).merge("dev")
    assert [conflict["kind"] for conflict in refused.value.conflicts] == ["unique_violation"]
    assert files(graph) == before


def test_a_merge_in_bulk_that_nobody_decided_writes_nothing(tmp_path: Path) -> None:
    """Its possible outcomes are checked all the same."""
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        w.insert("Person", {"name": "ana", "email": "a@x"})
        w.insert("Person", {"name": "bo"})
    graph.create_branch("dev")
    for branch, email in (("dev", "b@x"), ("main", "c@x")):
        with graph.write(branch) as w:
            w.update("Person", "ana", {"email": email})
    with graph.write() as w:
        w.update("Person", "bo", {"email": "b@x"})
    before = files(graph)
    with pytest.raises(MergeConflicts) as refused:
        BulkGraph.of(graph).merge("dev")
    found = refused.value.conflicts
    assert [conflict["kind"] for conflict in found] == ["divergent_update", "unique_violation"]
    assert files(graph) == before
    with pytest.raises(MergeConflicts) as again:
        graph.merge("dev")
    assert again.value.conflicts == found


def test_the_engine_follows_what_the_source_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    monkeypatch.setattr(engines, "start_tasks", lambda: None)
    choose = graph._merge_engine("auto")
    assert isinstance(choose(engines.AUTO_MERGE_ROWS_MIN), InProcess)
    assert isinstance(choose(engines.AUTO_MERGE_ROWS_MIN + 1), SparkMerge)
    assert isinstance(graph._merge_engine("local")(1 << 40), InProcess)
    assert isinstance(graph._merge_engine("spark")(0), SparkMerge)
    with pytest.raises(InvalidInput):
        graph._merge_engine("cluster")
