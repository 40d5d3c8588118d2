"""Who did what stays known when branches go: random histories against a dictionary.

The model knows, for every branch, entity and property, which commit set the value. Branches are
made, written, merged into each other, deleted and cleaned up at random; blame, histories and the
graph of commits must agree with the model all the time, and not change when a branch is deleted.

``OMNIGRAPH_TEST_AUTHORSHIP`` is the number of histories (a few by default).
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.rows import Commit
from omnigraph.errors import BranchInUse, HistoryReclaimed

HISTORIES = int(os.environ.get("OMNIGRAPH_TEST_AUTHORSHIP", "5"))
STEPS = 24
SCHEMA = "node N {\n  name: String @key\n  a: I64?\n  b: I64?\n  c: String?\n}\n"
PROPERTIES = ("a", "b", "c")
IDS = tuple("tuvwxyz")

Values = dict[str, Any]
Entities = dict[str, dict[str, tuple[Any, str]]]
"""By id and property: the value, and the commit that set it."""


class Model:
    """One random history, and what is true in it."""

    def __init__(self, place: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.graph = omnigraph.init(place, SCHEMA)
        first = self.graph.history.commits()[0].commit_id
        self.branches: dict[str, Entities] = {"main": {}}
        self.heads = {"main": first}
        self.parents: dict[str, tuple[str, ...]] = {first: ()}
        self.actors: dict[str, str | None] = {first: None}
        self.numbers = 0
        self.was_cleaned = False
        self.brought: dict[str, dict[str, set[str]]] = {"main": {}}
        """By branch and id: properties that came with a merge, which touched the entity last. Who
        set them is known whatever is cleaned up."""
        self.equal: dict[tuple[str, str, Any], set[str]] = {}
        """Commits that set a property of an entity to a value, on any branch."""
        self.blamed = self.reclaimed = 0

    def run(self) -> None:
        steps = [self.write] * 6 + [self.merge] * 4 + [self.fork] * 3
        steps += [self.delete] * 2 + [self.clean_up]
        for _ in range(STEPS):
            self.rng.choice(steps)()
            self.check()
        for name in [name for name in self.branches if name != "main"]:
            self.merge_into(name, "main")
        self.clean_up()
        self.check()

    # -- steps -------------------------------------------------------------------------------------

    def write(self) -> None:
        branch = self.rng.choice(list(self.branches))
        entities = self.branches[branch]
        actor = f"actor{self.number()}"
        changed: dict[str, Values | None] = {}
        inserted = []
        with self.graph.write(branch, actor=actor) as w:
            for id in self.rng.sample(IDS, self.rng.choice([1, 1, 2, 4])):
                values = self.values()
                if id not in entities:
                    w.insert("N", {"name": id, **values})
                    inserted.append(id)
                    changed[id] = {name: values.get(name) for name in PROPERTIES}
                elif self.rng.random() < 0.2:
                    w.delete("N", id)
                    changed[id] = None
                elif values:
                    w.update("N", id, values)
                    changed[id] = values
        commit = self.graph.history.commits(branch, limit=1)[0]
        if commit.commit_id == self.heads[branch]:
            return
        self.made(branch, commit)
        for id, values in changed.items():
            self.brought[branch].pop(id, None)
            if values is None:
                del entities[id]
                continue
            if id in inserted:
                entities[id] = {"name": (id, commit.commit_id)}
                self.equal.setdefault((id, "name", id), set()).add(commit.commit_id)
            for name, value in values.items():
                if id in inserted or entities[id][name][0] != value:
                    entities[id][name] = (value, commit.commit_id)
                    self.equal.setdefault((id, name, value), set()).add(commit.commit_id)

    def merge(self) -> None:
        source, target = self.pair()
        if source is not None:
            self.merge_into(source, target)

    def merge_into(self, source: str, target: str) -> None:
        before, theirs = self.branches[target], self.branches[source]
        result = self.graph.merge(
            source,
            target,
            actor=f"merger{self.number()}",
            level=self.rng.choice(["entity", "property"]),
            strategy=self.rng.choice(["ours", "theirs"]),
            resolutions=self.resolutions(source, target),
        )
        if result.commit is None:
            return
        self.made(target, result.commit)
        made: Entities = {}
        for id, values in content(self.graph, target).items():
            made[id] = {}
            for name, value in values.items():
                setter = result.commit.commit_id
                if id in before and before[id][name][0] == value:
                    setter = before[id][name][1]
                elif id in theirs and theirs[id][name][0] == value:
                    setter = theirs[id][name][1]
                made[id][name] = (value, setter)
            if made[id] != before.get(id):
                self.brought[target][id] = {
                    name for name, one in made[id].items() if one != before.get(id, {}).get(name)
                }
        self.branches[target] = made

    def resolutions(self, source: str, target: str) -> list[dict[str, Any]]:
        """Sometimes whoever merges says what an entity becomes, with values nobody had."""
        both = sorted(self.branches[source].keys() & self.branches[target].keys())
        if not both or self.rng.random() < 0.7:
            return []
        values = {"a": 1_000 + self.number()}
        named = {"entity_kind": "node", "type_name": "N", "entity_id": self.rng.choice(both)}
        return [{**named, "properties": values}]

    def fork(self) -> None:
        if len(self.branches) > 4:
            return
        source = self.rng.choice(list(self.branches))
        name = f"branch{self.number()}"
        self.graph.branches.create(name, source)
        self.heads[name] = self.heads[source]
        self.branches[name] = {id: dict(p) for id, p in self.branches[source].items()}
        self.brought[name] = dict(self.brought[source])

    def delete(self) -> None:
        names = [name for name in self.branches if name != "main"]
        if names:
            self.forget(self.rng.choice(names))

    def forget(self, name: str) -> None:
        others = [other for other in self.branches if other != name]
        before = {other: self.told(other) for other in others}
        try:
            self.graph.branches.delete(name, force=True)
        except BranchInUse:
            return
        del self.branches[name], self.heads[name]
        assert {other: self.told(other) for other in others} == before

    def clean_up(self) -> None:
        """Everything but heads goes; where branches wait to be merged their commits stay."""
        while len(self.branches) > 1:
            for name in [name for name in self.branches if name != "main"]:
                self.forget(name)
        self.graph.maintenance.cleanup(keep=1, confirm=True)
        self.was_cleaned = True

    def pair(self) -> tuple[str | None, str]:
        if len(self.branches) < 2:
            return None, "main"
        source, target = self.rng.sample(list(self.branches), 2)
        return source, target

    def values(self) -> Values:
        chosen = self.rng.sample(PROPERTIES, self.rng.randint(0, 3))
        return {n: self.rng.choice(["p", "q"] if n == "c" else [1, 2, None]) for n in chosen}

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def made(self, branch: str, commit: Commit) -> None:
        parents = (commit.parent, commit.merged_parent)
        self.parents[commit.commit_id] = tuple(p for p in parents if p is not None)
        self.actors[commit.commit_id] = commit.actor
        self.heads[branch] = commit.commit_id

    # -- comparing ---------------------------------------------------------------------------------

    def check(self) -> None:
        branch = self.rng.choice(list(self.branches))
        entities = self.branches[branch]
        assert content(self.graph, branch) == {
            id: {name: value for name, (value, _) in of_one.items()}
            for id, of_one in entities.items()
        }
        for id in entities:
            self.check_blame(branch, id)
        found = {c.commit_id: (p, c.actor) for c, p in self.graph.history.ancestry(branch)}
        known = self.reachable(self.heads[branch])
        assert found == {id: (self.parents[id], self.actors[id]) for id in known}
        for id in self.rng.sample(sorted(known), min(3, len(known))):
            assert self.graph.history.commit(id).actor == self.actors[id]

    def check_blame(self, branch: str, id: str) -> None:
        try:
            blamed = self.graph.history.blame("N", id, branch)
        except HistoryReclaimed:
            assert self.was_cleaned
            assert not self.brought[branch].get(id), (branch, id)
            return
        for item in blamed:
            value, setter = self.branches[branch][id][item.property]
            assert item.value == value
            if item.reclaimed:
                assert self.was_cleaned
                assert item.property not in self.brought[branch].get(id, ()), (branch, id, item)
                self.reclaimed += 1
                continue
            assert item.commit is not None
            found = item.commit.commit_id
            if self.was_cleaned and found != setter:
                # Both sides of a merge set this value; the states that show whose came first went.
                assert found in self.equal[(id, item.property, value)], (branch, id, item.property)
            else:
                assert found == setter, (branch, id, item.property)
            assert item.commit.actor == self.actors[found]
            self.blamed += 1

    def told(self, branch: str) -> list[Any]:
        """Everything that histories and blame say on a branch."""
        found: list[Any] = []
        for id in sorted(IDS):
            try:
                for event in self.graph.history.entity("N", id, branch):
                    merged = [(c.commit.commit_id, c.op, c.properties) for c in event.merged]
                    found.append((id, event.commit.commit_id, event.op, merged))
                    self.check_event(event)
            except HistoryReclaimed:
                assert self.was_cleaned
        return found

    def check_event(self, event: Any) -> None:
        """What is told of merged branches led to the merge."""
        known = self.reachable(event.commit.merged_parent) if event.merged else set()
        for change in event.merged:
            assert change.commit.commit_id in known
            assert change.commit.actor == self.actors[change.commit.commit_id]

    def reachable(self, start: str) -> set[str]:
        found, waiting = set(), [start]
        while waiting:
            id = waiting.pop()
            if id not in found:
                found.add(id)
                waiting += self.parents[id]
        return found


def content(graph: Graph, branch: str) -> dict[str, Values]:
    records = [json.loads(line) for line in b"".join(graph.export(branch)).splitlines()]
    return {
        record["data"]["name"]: {name: record["data"][name] for name in ("name", *PROPERTIES)}
        for record in records
    }


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_authorship_agrees_with_its_model(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    model = Model(tmp_path / "g", seed)
    model.run()
    assert model.blamed > 0
