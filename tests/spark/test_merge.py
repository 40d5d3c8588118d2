"""Merges by tasks and in process have the same results and the same conflicts.

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
from tests.merge.test_merge_conflicts import check_pair
from tests.merge.test_merge_model import SCHEMA as MODEL_SCHEMA
from tests.merge.test_merge_model import Scene, steps
from tests.support.inline_tasks import InlineTasks, bulk_graph, bulk_merge_engine
from tests.support.internals import backend_of, repository_of
from tests.support.stores import open_objects

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.tasks import InProcessTasks
from omnigraph.errors import ConstraintViolation, InvalidInput, MergeConflicts
from omnigraph.local.merges import LocalMerges
from omnigraph.merge.engine import LocalMerge
from omnigraph.spark import engine_choice
from omnigraph.spark.merge import SparkMerge

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
    """Random writes to a branch; refused ones are skipped."""
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
    """The result of a merge and the whole content, or all of its conflicts."""
    head = graph.snapshot().commit_id
    try:
        result = graph.merge("dev", **options)
    except MergeConflicts as error:
        assert graph.snapshot().commit_id == head
        return error.conflicts
    changes = [(c.type_name, c.id, str(c.op), c.before, c.after) for c in graph.diff(head, "main")]
    return str(result.outcome), result.rows_written, b"".join(graph.export()), changes


def files(graph: Graph) -> set[str]:
    return {found.path for found in open_objects(repository_of(graph).location).list("")}


@pytest.mark.parametrize("seed", range(MERGES))
def test_a_random_merge_does_the_same_in_process_and_in_bulk(seed: int, tmp_path: Path) -> None:
    compare(seed, tmp_path, bulk_graph)


def compare(seed: int, folder: Path, other: Callable[[Graph], Graph]) -> None:
    rng = random.Random(seed)
    graph = omnigraph.init(folder / "one", SCHEMA)
    known = {"Person": PEOPLE, "City": CITIES}
    records = [{"type": t, "data": {"name": name}} for t, names in known.items() for name in names]
    graph.load(records, mode="append")
    edited(graph, "main", rng, 2)
    graph.branches.create("dev")
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
    backend = backend_of(graph)
    in_bulk = LocalMerges(backend.context, backend.branches, bulk_merge_engine(InlineTasks()))
    monkeypatch.setattr(backend, "merges", in_bulk)
    scene = Scene(graph, rng)
    scene.edit("main")
    for _ in steps(scene, rng):
        pass


@pytest.mark.parametrize("seed", range(MERGES // 4))
def test_a_report_of_a_merge_in_bulk_is_complete_and_can_be_decided(
    seed: int, tmp_path: Path
) -> None:
    check_pair(f"bulk/{seed}", tmp_path / "g", bulk_graph)


@pytest.mark.spark
def test_a_merge_on_spark_does_the_same_as_one_in_process(
    tmp_path: Path, spark: SparkSession
) -> None:
    class OnSpark(Graph):
        def merge(self, *arguments: Any, **options: Any) -> Any:
            return super().merge(*arguments, **options, engine="spark")

    compare(3, tmp_path, lambda graph: OnSpark(backend_of(graph)))


def test_a_refused_merge_removes_its_files(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        w.insert("Person", {"name": "ana", "email": "a@x"})
    graph.branches.create("dev")
    for branch, name in (("dev", "bo"), ("main", "cy")):
        with graph.write(branch) as w:
            w.insert("Person", {"name": name, "email": "same@x"})
    before = files(graph)
    with pytest.raises(MergeConflicts) as refused:
        bulk_graph(graph).merge("dev")
    assert [conflict["kind"] for conflict in refused.value.conflicts] == ["unique_violation"]
    assert files(graph) == before


def test_an_undecided_merge_in_bulk_writes_nothing(tmp_path: Path) -> None:
    """The alternatives of undecided entities are still checked."""
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        w.insert("Person", {"name": "ana", "email": "a@x"})
        w.insert("Person", {"name": "bo"})
    graph.branches.create("dev")
    for branch, email in (("dev", "b@x"), ("main", "c@x")):
        with graph.write(branch) as w:
            w.update("Person", "ana", {"email": email})
    with graph.write() as w:
        w.update("Person", "bo", {"email": "b@x"})
    before = files(graph)
    with pytest.raises(MergeConflicts) as refused:
        bulk_graph(graph).merge("dev")
    found = refused.value.conflicts
    assert [conflict["kind"] for conflict in found] == ["divergent_update", "unique_violation"]
    assert files(graph) == before
    with pytest.raises(MergeConflicts) as again:
        graph.merge("dev")
    assert again.value.conflicts == found


def test_the_engine_is_chosen_by_the_number_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = repository_of(omnigraph.init(tmp_path / "g", SCHEMA))
    monkeypatch.setattr(engine_choice, "start_tasks", lambda _: InProcessTasks())
    choose = engine_choice.merge_engine(repository, "auto")
    assert isinstance(choose(engine_choice.AUTO_MERGE_ROWS_MIN), LocalMerge)
    assert isinstance(choose(engine_choice.AUTO_MERGE_ROWS_MIN + 1), SparkMerge)
    assert isinstance(engine_choice.merge_engine(repository, "local")(1 << 40), LocalMerge)
    assert isinstance(engine_choice.merge_engine(repository, "spark")(0), SparkMerge)
    with pytest.raises(InvalidInput):
        engine_choice.merge_engine(repository, "cluster")
