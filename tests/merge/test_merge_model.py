"""Random histories of a real graph against a model: branches, merges, undoing, end to end.

``OMNIGRAPH_TEST_MERGES`` raises the number of histories (500 is what the project promises).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.merge.test_three_way import expected
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchInUse, MergeConflicts
from omnigraph.snapshots.diff import EntityChange

HISTORIES = int(os.environ.get("OMNIGRAPH_TEST_MERGES", "6"))
STEPS = 14
SCHEMA = "node N {\n  name: String @key\n  p: I32?\n  q: I32?\n}\n"
NAMES = [f"e{n}" for n in range(6)]

State = dict[str, dict[str, int]]


def content(graph: Graph, branch: str) -> State:
    pin = graph.snapshot(branch).pin("node:N")
    rows = repository_of(graph).tables.open(pin.ref).scan(["id", "p", "q"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: {"p": row["p"], "q": row["q"]} for row in rows}


def difference(old: State, new: State) -> set[tuple[str, str]]:
    """What sets two states apart, by looking at everything."""
    found = set()
    for id in old.keys() | new.keys():
        if id not in new:
            found.add((id, "delete"))
        elif id not in old:
            found.add((id, "insert"))
        elif old[id] != new[id]:
            found.add((id, "update"))
    return found


class Scene:
    """A graph, and what should be in it."""

    def __init__(self, graph: Graph, rng: random.Random) -> None:
        self.graph, self.rng = graph, rng
        self.states: dict[str, State] = {}  # by commit
        self.parents: dict[str, tuple[str, ...]] = {}
        first = graph.history.commits()[0].commit_id
        self.states[first], self.parents[first] = {}, ()
        self.heads = {"main": first}

    def made(self, branch: str, state: State, *merged: str) -> None:
        """The graph has a new commit on a branch: it is what was expected."""
        commit = self.graph.history.commits(branch, limit=1)[0]
        assert commit.parent == self.heads[branch]
        assert (commit.merged_parent,) == (merged or (None,))
        assert content(self.graph, branch) == state
        found = {(c.id, str(c.op)) for c in self.graph.diff(commit.parent, branch)}
        assert found == difference(self.states[self.heads[branch]], state)
        self.parents[commit.commit_id] = (self.heads[branch], *merged)
        self.states[commit.commit_id] = state
        self.heads[branch] = commit.commit_id

    # -- steps -------------------------------------------------------------------------------------

    def edit(self, branch: str) -> None:
        state = dict(self.states[self.heads[branch]])
        with self.graph.write(branch) as w:
            for id in self.rng.sample(NAMES, self.rng.randint(1, 3)):
                if id in state and self.rng.random() < 0.35:
                    w.delete("N", id)
                    del state[id]
                else:
                    state[id] = {"p": self.rng.randint(0, 2), "q": self.rng.randint(0, 1)}
                    w.replace("N", {"name": id, **state[id]})
        self.made(branch, state)

    def overwrite(self, branch: str) -> None:
        chosen = self.rng.sample(NAMES, 3)
        state = {id: {"p": self.rng.randint(0, 2), "q": 0} for id in chosen}
        records = [{"type": "N", "data": {"name": id, **state[id]}} for id in state]
        self.graph.load(records, mode="overwrite", branch=branch)
        self.made(branch, state)

    def merge(self, source: str, target: str) -> None:
        level = self.rng.choice(["entity", "property"])
        strategy = self.rng.choice([None, None, "ours", "theirs"])
        theirs, ours = self.heads[source], self.heads[target]
        base = self._base(theirs, ours)
        options: dict[str, Any] = {"level": level, "strategy": strategy}
        preview = self.graph.merge(source, target, dry_run=True, **options)
        assert content(self.graph, target) == self.states[ours]
        if base == theirs:
            assert preview.outcome == "already_up_to_date"
            assert self.graph.merge(source, target, **options).commit is None
            return
        merged, conflicts = self._merged(base, theirs, ours, level, strategy)
        done = "fast_forward" if base == ours else "merged"
        assert preview.outcome == ("conflicts" if conflicts else done)
        assert preview.base_commit_id == base
        assert [(c.id, str(c.kind)) for c in preview.conflicts] == conflicts
        if conflicts:
            with pytest.raises(MergeConflicts) as caught:
                self.graph.merge(source, target, **options)
            told = [(c["entity_id"], c["kind"]) for c in caught.value.conflicts]
            assert told == conflicts
            assert self.graph.snapshot(target).commit_id == ours
            return
        result = self.graph.merge(source, target, **options)
        assert result.outcome == preview.outcome
        self.made(target, merged, theirs)
        really = self.graph.diff(ours, target)
        assert [_plain(c) for c in preview.changes] == [_plain(c) for c in really]
        ends = source != "main" and self.rng.random() < 0.4
        again = self.graph.merge(source, target, delete_branch=ends)
        assert again.outcome == "already_up_to_date"
        assert again.branch_deleted == (
            (source not in self.graph.branches.list()) if ends else None
        )
        if again.branch_deleted:
            del self.heads[source]

    def revert(self, branch: str) -> None:
        chain = [self.heads[branch]]
        while self.parents[chain[-1]]:
            chain.append(self.parents[chain[-1]][0])
        if len(chain) < 2:
            return
        undone = self.rng.choice(chain[:-1])
        before = self.parents[undone][0]
        level = self.rng.choice(["entity", "property"])
        merged, conflicts = self._merged(undone, before, self.heads[branch], level, None)
        options: dict[str, Any] = {"level": level}
        if conflicts:
            with pytest.raises(MergeConflicts):
                self.graph.revert(undone, branch, **options)
            return
        if self.graph.revert(undone, branch, **options) is None:
            assert merged == self.states[self.heads[branch]]
            return
        self.made(branch, merged)

    def pick(self, branch: str) -> None:
        picked = self.rng.choice([id for id in self._alive() if self.parents[id]])
        before, head = self.parents[picked][0], self.heads[branch]
        merged, conflicts = self._merged(before, picked, head, "property", "theirs")
        assert not conflicts
        if self.graph.cherry_pick(picked, branch, strategy="theirs") is None:
            assert merged == self.states[head]
            return
        self.made(branch, merged)

    def reset(self, branch: str) -> None:
        commit = self.rng.choice(self.graph.history.commits(branch)).commit_id
        if self.graph.reset(commit, branch) is not None:
            self.made(branch, self.states[commit])

    def restore(self, branch: str) -> None:
        commit = self.rng.choice(self._alive())
        ids = self.rng.sample(NAMES, 2)
        state = {id: v for id, v in self.states[self.heads[branch]].items() if id not in ids}
        state |= {id: v for id, v in self.states[commit].items() if id in ids}
        if self.graph.restore(commit, {"node:N": ids}, branch) is None:
            assert state == self.states[self.heads[branch]]
            return
        self.made(branch, state)

    def fork(self, name: str) -> None:
        start = self.rng.choice([*self.heads, *self._alive()])
        self.graph.branches.create(name, start)
        self.heads[name] = self.heads.get(start, start)
        assert content(self.graph, name) == self.states[self.heads[name]]

    def delete(self, branch: str) -> None:
        try:
            self.graph.branches.delete(branch, force=True)
        except BranchInUse:
            return
        del self.heads[branch]

    # -- the model ---------------------------------------------------------------------------------

    def _alive(self) -> list[str]:
        """Commits that some branch still holds."""
        return sorted(
            {c.commit_id for name in self.heads for c in self.graph.history.commits(name)}
        )

    def _ways(self, id: str) -> dict[str, int]:
        """How far back every ancestor is, also through commits of deleted branches: merges keep
        them in the history."""
        found = {id: 0}
        for parent in self.parents[id]:
            for ancestor, steps in self._ways(parent).items():
                found[ancestor] = min(found.get(ancestor, steps + 1), steps + 1)
        return found

    def _base(self, one: str, two: str) -> str:
        """Only a commit whose state a branch can show is a base."""
        first, second, alive = self._ways(one), self._ways(two), set(self._alive())
        common = [id for id in first if id in second and id in alive]
        best = [c for c in common if not any(c != o and c in self._ways(o) for o in common)]
        versions = {
            c.commit_id: c.manifest_version or 0
            for name in self.heads
            for c in self.graph.history.commits(name)
        }
        return sorted(
            sorted(best, reverse=True), key=lambda id: (first[id] + second[id], -versions[id])
        )[0]

    def _merged(
        self, base: str, theirs: str, ours: str, level: Any, strategy: Any
    ) -> tuple[State, list[tuple[str, str]]]:
        sides = [self.states[id] for id in (base, theirs, ours)]
        merged, conflicts = {}, []
        for id in sorted({id for side in sides for id in side}):
            outcome = expected(*(side.get(id) for side in sides), level, strategy)
            if isinstance(outcome, str):
                conflicts.append((id, outcome))
            elif outcome is not None:
                merged[id] = outcome
        return merged, conflicts


def _plain(change: EntityChange) -> tuple[Any, ...]:
    return (change.type_name, change.id, change.op, change.before, change.after)


def steps(scene: Scene, rng: random.Random) -> Iterator[None]:
    for number in range(STEPS):
        names = sorted(scene.heads)
        branch = rng.choice(names)
        other = rng.choice([name for name in names if name != branch] or [branch])
        action = rng.random()
        if (action < 0.15 and len(names) < 4) or len(names) == 1:
            scene.fork(f"b{number}")
        elif action < 0.45:
            scene.edit(branch)
        elif action < 0.5:
            scene.overwrite(branch)
        elif action < 0.56:
            scene.revert(branch)
        elif action < 0.6:
            scene.pick(branch)
        elif action < 0.64:
            scene.reset(branch)
        elif action < 0.68:
            scene.restore(branch)
        elif action < 0.72 and branch != "main":
            scene.delete(branch)
        else:
            scene.merge(branch, other)
        yield


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_random_history_agrees_with_the_model(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    scene = Scene(omnigraph.init(tmp_path / "g", SCHEMA), rng)
    scene.edit("main")
    for _ in steps(scene, rng):
        pass
    fresh = omnigraph.open(tmp_path / "g", read_only=True)
    for branch, head in scene.heads.items():
        assert content(fresh, branch) == scene.states[head]
    assert fresh.maintenance.check().findings == []
