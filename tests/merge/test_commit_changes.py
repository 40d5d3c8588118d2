"""Small commits that are read together are told apart as if each were read alone.

Random commits of one branch insert, update, delete and write again with the same values, to nodes
and edges, with maintenance in between.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.history.attribution import AttributedChange
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.schemas import cached_schema
from omnigraph.merge.commit_changes import CommitChange, TypeStep, changes_together
from omnigraph.snapshots.commit_range import CommitTransition, CommitWindow
from omnigraph.snapshots.entity_delta import paired_types, touched_types

SCHEMA = """
node N {
  name: String @key
  a: I64?
  b: String?
  v: Vector(2)?
}
node Blob {
  name: String @key
  data: Blob?
}
edge E: N -> N { a: I64? }
"""
COMMITS = 14
NAMES = [f"n{number}" for number in range(8)]


def write(graph: Graph, rng: random.Random, there: set[str]) -> None:
    with graph.write("work") as w:
        for name in rng.sample(NAMES, rng.choice([1, 1, 2, 5])):
            if name not in there:
                w.insert("N", {"name": name, "a": rng.randrange(2)})
                there.add(name)
            elif rng.random() < 0.25:
                w.delete("N", name)
                there.discard(name)
            else:
                values = {"a": rng.randrange(2), "b": rng.choice(["p", None]), "v": [1.0, 2.0]}
                w.update("N", name, dict(rng.sample(sorted(values.items()), rng.choice([1, 2]))))
        if len(there) > 1 and rng.random() < 0.5:
            start, end = rng.sample(sorted(there), 2)
            w.insert_edge("E", start, end, {"a": rng.randrange(2)})


def steps(repository: Repository, since: int) -> dict[str, list[TypeStep]]:
    """The commits of the branch that touched each type, by type key."""
    branch = repository.branch("work")
    state = repository.manifest(branch).current()
    last = len(state.timeline.commits) - 1
    window = CommitWindow.read(
        branch, state.timeline, lambda s: cached_schema(state, s.schema_hash), since, last
    )
    found: dict[str, list[TypeStep]] = {}
    for position in range(since, last + 1):
        transition: CommitTransition = window.transition(position)
        before, after = transition.before.snapshot, transition.after.snapshot
        for keys in touched_types(before, after, paired_types(before, after)):
            step = TypeStep(transition, keys)
            found.setdefault(step.pin.key, []).append(step)
    return found


def told(done: list[CommitChange]) -> dict[AttributedChange, list[str]]:
    return {change: sorted(ids.to_pylist()) for change, ids in done if len(ids)}


@pytest.mark.parametrize("seed", range(4))
def test_commits_read_together_agree_with_commits_read_alone(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load({"N": [{"name": name, "a": 0} for name in NAMES[:4]]}, mode="append")
    graph.branches.create("work")
    first = len(graph.history.commits("work"))
    there = set(NAMES[:4])
    for number in range(COMMITS):
        write(graph, rng, there)
        if number in (COMMITS // 3, 2 * COMMITS // 3):
            graph.maintenance.optimize("work")
    repository = repository_of(graph)
    compared = 0
    for found in steps(repository, first).values():
        together = changes_together(repository, found, None)
        alone = [done for step in found for done in step.changes(repository)]
        if together is not None:
            assert told(together) == told(alone)
            compared += 1
    assert compared > 0


def test_blobs_and_single_commits_are_read_alone(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.branches.create("work")
    first = len(graph.history.commits("work"))
    for value in (b"1", b"2"):
        with graph.write("work") as w:
            w.upsert("Blob", {"name": "x", "data": value})
    graph.load({"N": [{"name": "x"}]}, branch="work", mode="append")
    repository = repository_of(graph)
    for found in steps(repository, first).values():
        assert changes_together(repository, found, None) is None
