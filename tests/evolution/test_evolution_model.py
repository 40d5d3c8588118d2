"""Random changes of schemas against a model: of the planner alone, and of graphs end to end."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evolution.evolution_model import Edit, Editor, Model, Type

import omnigraph
from omnigraph import Graph
from omnigraph.errors import SchemaChangeRefused
from omnigraph.evolution.apply import SchemaResult
from omnigraph.lang.schema import AcceptedSchema, PlanFacts, accept_schema, plan_schema
from omnigraph.model.ids import new_ulid
from omnigraph.mutation.batch import Batch

PLANNED = 2_000
"""Sequences of the planner; they cost milliseconds."""
EDITS = 4
GRAPHS = int(os.environ.get("OMNIGRAPH_EVOLUTION_SEQUENCES", "12"))
STEPS = 16


# -- the planner alone -----------------------------------------------------------------------------


def test_plans_of_random_sequences_say_what_was_changed() -> None:
    for seed in range(PLANNED):
        editor = Editor(random.Random(seed))
        model = editor.start()
        accepted = accept_schema(model.text(), mint=new_ulid)
        identities = dict(_identities(model, accepted))
        for _ in range(EDITS):
            edit = editor.edit(model)
            if edit.undrop:
                break  # what was dropped is found in a graph's history
            after = accept_schema(edit.text, previous=accepted, mint=new_ulid)
            given = edit.backfill.keys() | edit.compute.keys()
            facts = PlanFacts(filled=frozenset(f"node:{name}" for name in given))
            plan = plan_schema(accepted, after, facts=facts)
            assert {(step.kind, step.entity) for step in plan.steps} == edit.steps, seed
            assert plan.supported
            now = dict(_identities(model, after))
            for uid in identities.keys() & now.keys():
                assert identities[uid] == now[uid], seed
            assert len(set(now.values())) == len(now)
            accepted, identities = after, now


def _identities(model: Model, schema: AcceptedSchema) -> Iterator[tuple[int, str]]:
    for owner in model.types.values():
        found = schema.nodes[owner.name]
        yield owner.uid, found.type_id
        for prop in owner.props.values():
            yield prop.uid, found.properties[prop.name].property_id


# -- end to end ------------------------------------------------------------------------------------


class Run:
    """A graph and its model, side by side."""

    def __init__(self, where: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.editor = Editor(self.rng)
        start = self.editor.start()
        self.graph = omnigraph.init(where, start.text())
        self.branches = {"main": start}
        self.untouched: dict[str, tuple[str, str]] = {}
        """Branches with the one they came from, and its head then."""
        self.past: list[tuple[str, Model]] = []

    def step(self) -> None:
        branch = self.rng.choice(sorted(self.branches))
        action = self.rng.choices(
            (
                self.write,
                self.evolve,
                self.fork,
                self.merge,
                self.look_back,
                self.reopen,
                self.purge,
            ),
            (10, 12, 2, 4, 4, 2, 1),
        )[0]
        action(branch)
        self.compare(branch)

    def write(self, branch: str) -> None:
        model = self.branches[branch]
        owner = self.rng.choice(list(model.types.values()))
        with self.graph.write(branch) as w:
            for number in self.rng.sample(range(8), self.rng.randint(1, 3)):
                self._write_one(w, owner, f"k{number}")
        self.note(branch)

    def _write_one(self, w: Batch, owner: Type, id: str) -> None:
        there = id in owner.rows
        if there and self.rng.random() < 0.3:
            w.delete(owner.name, id)
            del owner.rows[id]
        elif there and owner.props:
            prop = self.rng.choice(list(owner.props.values()))
            value = prop.value(self.rng)
            w.update(owner.name, id, {prop.name: value})
            owner.rows[id][prop.uid] = value
        elif not there:
            values = {prop.uid: prop.value(self.rng) for prop in owner.props.values()}
            for prop in owner.props.values():
                if prop.default is not None and self.rng.random() < 0.5:
                    values[prop.uid] = prop.default
            given = {
                p.name: values[p.uid]
                for p in owner.props.values()
                if values[p.uid] != p.default or p.default is None
            }
            w.insert(owner.name, {"k": id, **given})
            # What comes after a drop has nothing of it.
            owner.rows[id] = {**dict.fromkeys(owner.hidden), **values}

    def evolve(self, branch: str) -> None:
        before = self.branches[branch].copy()
        edit = self.editor.edit(self.branches[branch])
        if edit.refused:
            with pytest.raises(SchemaChangeRefused):
                self.apply(branch, edit)
            self.branches[branch] = before
            return
        result = self.apply(branch, edit)
        assert {(step.kind, step.entity) for step in result.plan.steps} == edit.steps
        self.note(branch)

    def apply(self, branch: str, edit: Edit) -> SchemaResult:
        return self.graph.apply_schema(
            edit.text,
            branch=branch,
            backfill=edit.backfill,
            compute=edit.compute,
            undrop=edit.undrop,
        )

    def fork(self, branch: str) -> None:
        if len(self.branches) < 4:
            name = f"b{self.editor.uid()}"
            self.graph.branches.create(name, branch)
            self.branches[name] = self.branches[branch].copy()
            self.untouched[name] = (branch, self.graph.snapshot(branch).commit_id)

    def merge(self, branch: str) -> None:
        """Back into a branch that did not move meanwhile: it becomes what the source is."""
        parent, head = self.untouched.get(branch, ("", ""))
        if not parent or self.graph.snapshot(parent).commit_id != head:
            return
        self.graph.merge(branch, parent)
        self.branches[parent] = self.branches[branch].copy()
        self.untouched[branch] = (parent, self.graph.snapshot(parent).commit_id)
        self.note(parent)
        self.compare(parent)

    def look_back(self, branch: str) -> None:
        if self.past:
            commit, model = self.rng.choice(self.past)
            assert read(self.graph, at=commit) == model.visible()

    def purge(self, branch: str) -> None:
        """Out of every state, of every type that ever had this name."""
        owners = [owner for owner in self.branches[branch].types.values() if owner.rows]
        if not owners:
            return
        owner = self.rng.choice(owners)
        id = self.rng.choice(sorted(owner.rows))
        self.graph.maintenance.purge("node", owner.name, id, confirm=True)
        models = [*self.branches.values(), *(model for _, model in self.past)]
        uids = {t.uid for m in models for t in m.types.values() if t.name == owner.name}
        for model in models:
            model.forget(uids, id)

    def reopen(self, branch: str) -> None:
        self.graph = omnigraph.open(self.graph.uri)

    def note(self, branch: str) -> None:
        commit = self.graph.snapshot(branch).commit_id
        self.past.append((commit, self.branches[branch].copy()))

    def compare(self, branch: str) -> None:
        assert read(self.graph, branch=branch) == self.branches[branch].visible()


def read(graph: Graph, **where: str) -> dict[str, dict[str, object]]:
    """Everything of a state, by type and id; also types without entities."""
    schema = graph.schema(**where)
    found: dict[str, dict[str, object]] = {name: {} for name in schema.nodes}
    for line in b"".join(graph.export(**where)).splitlines():
        record = json.loads(line)
        data = record["data"]
        found[record["type"]][data.pop("id")] = data
    return found


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_a_graph_that_evolves_and_its_model_never_differ(seed: int, tmp_path: Path) -> None:
    run = Run(tmp_path / "g", seed)
    for _ in range(STEPS):
        run.step()
    for branch in run.branches:
        run.compare(branch)
    for commit, model in run.past:
        assert read(run.graph, at=commit) == model.visible()
    assert omnigraph.open(tmp_path / "g").maintenance.check().findings == []
