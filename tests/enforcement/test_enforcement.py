"""A graph that is opened with a policy does what the policy allows the actor, and nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import PEOPLE, files_below, people_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Forbidden, InvalidInput, NotAvailable
from omnigraph.graph import backend as interface
from omnigraph.model.requests import (
    AnalysisRequest,
    ChangeFilter,
    CommitFilter,
    CommitOptions,
    EmbedRequest,
    ExportRequest,
    FeedPosition,
    LoadRequest,
    MergeDecisions,
    MergeRequest,
    PageSize,
    RestoreRequest,
    SchemaRequest,
    StateRef,
    StreamRequest,
)

POLICY = """
version: 2
groups:
  people: [ana, bo]
  agents: [bot]
  nobody: [eve]
protected_branches: [main]
rules:
  - id: people
    allow:
      actors: {group: people}
      actions: [read, export, change, schema_apply, branch_create, branch_merge, branch_delete]
  - id: bots-read
    allow: {actors: {group: agents}, actions: [read, export]}
  - id: bots-fork
    allow:
      actors: {group: agents}
      actions: [branch_create]
      target_branches: ["agents/{actor}/*"]
  - id: bots-change-their-own
    allow: {actors: {group: agents}, actions: [change], branches: ["agents/{actor}/*"]}
  - id: bots-do-not-see-cities
    deny: {actors: {group: agents}, actions: [read, export, change], types: [City]}
required_approvals:
  - {id: review, target_branches: [main], approvals: 1, approvers: {group: people}}
"""
READ = "query q() { match { $p: Person } return { $p.name } }"
READ_CITIES = "query q() { match { $p: Person  $p livesIn $c } return { $p.name, $c.name } }"
WRITE = 'query w() { insert Person { name: "cy" } }'


@pytest.fixture
def where(tmp_path: Path) -> Path:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("dev")
    graph.tags.create("v1")
    (tmp_path / "team.policy.yaml").write_text(POLICY)
    return tmp_path


def as_actor(where: Path, actor: str | None) -> Graph:
    return omnigraph.open(where / "g", policy=where / "team.policy.yaml", actor=actor)


COMMIT = CommitOptions()
MAIN = StateRef("main")
DECISIONS = MergeDecisions()
CHANGES = ChangeFilter()
CALLS: dict[str, Callable[[Any], Any]] = {
    "reads.query": lambda b: b.query(READ, None, None, MAIN, None),
    "reads.prepare": lambda b: b.prepare(READ, None, MAIN, None),
    "reads.explain": lambda b: b.explain(READ, None, MAIN, None),
    "reads.snapshot": lambda b: b.snapshot(StateRef(at="v1")),
    "reads.schema": lambda b: b.schema(MAIN),
    "reads.entity": lambda b: b.entity("node:Person", "ana", MAIN),
    "reads.blob": lambda b: b.blob("node", "Person", "ana", "photo", MAIN),
    "reads.export": lambda b: b.export(MAIN, None),
    "reads.diff": lambda b: b.diff("v1", "main", CHANGES),
    "writes.write": lambda b: b.write("main", COMMIT),
    "writes.mutate": lambda b: b.mutate(WRITE, None, None, "main", COMMIT),
    "writes.load": lambda b: b.load(LoadRequest([], "append", "main"), COMMIT, None),
    "merges.merge": lambda b: b.merge(MergeRequest("dev", "main", DECISIONS), COMMIT),
    "merges.revert": lambda b: b.revert("v1", "main", DECISIONS, COMMIT),
    "merges.cherry_pick": lambda b: b.cherry_pick("v1", "main", DECISIONS, COMMIT),
    "merges.restore": lambda b: b.restore(RestoreRequest("v1", {}, "main"), COMMIT),
    "merges.reset": lambda b: b.reset("v1", "main", COMMIT),
    "schemas.plan": lambda b: b.plan(SchemaRequest(PEOPLE, "main")),
    "schemas.apply": lambda b: b.apply(SchemaRequest(PEOPLE, "main"), COMMIT),
    "branches.names": lambda b: b.names(),
    "branches.create": lambda b: b.create("new", "main", None, None),
    "branches.delete": lambda b: b.delete("dev", force=True, idempotency_key=None),
    "branches.protect": lambda b: b.protect("dev", protected=True, merges_only=False),
    "branches.is_protected": lambda b: b.is_protected("dev"),
    "tags.all": lambda b: b.all(),
    "tags.create": lambda b: b.create(
        "v2", "main", force=False, actor=None, message=None, idempotency_key=None
    ),
    "tags.delete": lambda b: b.delete("v1", None),
    "history.log": lambda b: b.log("main", CommitFilter(), None),
    "history.ancestry": lambda b: b.ancestry("main"),
    "history.commit": lambda b: b.commit("HEAD"),
    "history.commit_changes": lambda b: b.commit_changes("HEAD", CHANGES, PageSize(), None),
    "history.changes": lambda b: b.changes("main", FeedPosition(), CHANGES, PageSize(), None),
    "history.baseline": lambda b: b.baseline("main", CHANGES),
    "history.entity": lambda b: b.entity("node:Person", "ana", "main"),
    "history.blame": lambda b: b.blame("node:Person", "ana", "main"),
    "maintenance.recovered_at_open": lambda b: b.recovered_at_open,
    "maintenance.check": lambda b: b.check(quick=True),
    "maintenance.upgrade": lambda b: b.upgrade(apply=True),
    "maintenance.relocate": lambda b: b.relocate(),
    "maintenance.indexes": lambda b: b.indexes("main"),
    "maintenance.build_indexes": lambda b: b.build_indexes("main", "local"),
    "maintenance.drop_indexes": lambda b: b.drop_indexes("node:Person", None, "main"),
    "maintenance.optimize": lambda b: b.optimize("main", "local"),
    "maintenance.tend": lambda b: b.tend("main", {"node:Person": 1}),
    "maintenance.cleanup": lambda b: b.cleanup(1, None, confirm=True),
    "maintenance.purge": lambda b: b.purge("node", "Person", "ana", confirm=True, actor=None),
    "maintenance.hold": lambda b: b.hold("main"),
    "maintenance.repair": lambda b: b.repair(
        "main", confirm=True, force=False, restore=False, actor=None
    ),
    "maintenance.recover": lambda b: b.recover(set_aside=False),
    "maintenance.pending_writes": lambda b: b.pending_writes(),
    "maintenance.recoveries": lambda b: b.recoveries(),
    "maintenance.backup": lambda b: b.backup("copy"),
    "maintenance.clone": lambda b: b.clone("copy"),
    "bulk.analyze": lambda b: b.analyze(AnalysisRequest("pagerank", None, None, {}), MAIN, None),
    "bulk.embed": lambda b: b.embed(EmbedRequest("main"), COMMIT, None),
    "bulk.export": lambda b: b.export(ExportRequest("out", MAIN)),
    "bulk.stream": lambda b: b.stream(
        None, "type", StreamRequest("append", "q", "c", "main"), COMMIT
    ),
}


def interface_calls() -> set[str]:
    """Every method and property of every capability of a backend."""
    hints = {
        name: member.fget.__annotations__["return"]
        for name, member in vars(interface.Backend).items()
        if isinstance(member, property) and name != "uri"
    }
    return {
        f"{capability}.{name}"
        for capability, protocol in hints.items()
        for name, member in vars(getattr(interface, protocol)).items()
        if not name.startswith("_") and (isfunction(member) or isinstance(member, property))
    }


def test_every_call_of_a_backend_is_tried() -> None:
    assert set(CALLS) == interface_calls()


@pytest.mark.parametrize("actor", ["eve", "stranger", None])
def test_no_call_is_possible_for_a_denied_actor(where: Path, actor: str | None) -> None:
    head = omnigraph.open(where / "g").snapshot().commit_id
    before = files_below(where)
    backend = as_actor(where, actor)._backend
    for name, call in CALLS.items():
        capability = name.partition(".")[0]
        service = getattr(backend, capability)
        named = _Naming(service, head)
        with pytest.raises(Forbidden) as refused:
            call(named)
        assert refused.value.message.startswith("policy denied action"), name
    assert files_below(where) == before


class _Naming:
    """Puts the id of a real commit where a call says HEAD."""

    def __init__(self, service: Any, head: str) -> None:
        self._service = service
        self._head = head

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._service, name)
        if not callable(member):
            return member
        return lambda *given, **more: member(
            *(self._head if one == "HEAD" else one for one in given), **more
        )


def test_an_allowed_actor_writes_and_is_recorded(where: Path) -> None:
    graph = as_actor(where, "bo")
    graph.mutate(WRITE)
    assert next(iter(graph.history.commits(limit=1))).actor == "bo"
    with pytest.raises(Forbidden, match="cannot be recorded as 'ana'"):
        graph.mutate(WRITE, actor="ana")


def test_an_agent_writes_to_branches_of_its_own_only(where: Path) -> None:
    graph = as_actor(where, "bot")
    with pytest.raises(Forbidden, match="on branch 'main'"):
        graph.mutate(WRITE)
    with pytest.raises(Forbidden, match="targeting branch 'agents/other/1'"):
        graph.branches.create("agents/other/1")
    graph.branches.create("agents/bot/1")
    graph.mutate(WRITE, branch="agents/bot/1")
    with pytest.raises(Forbidden, match="action 'branch_merge'"):
        graph.merge("agents/bot/1", "main")


def test_a_denied_type_is_not_read_in_any_way(where: Path) -> None:
    graph = as_actor(where, "bot")
    assert len(graph.query(READ).rows()) == 2
    attempts: list[Callable[[], Any]] = [
        lambda: graph.query(READ_CITIES),
        lambda: graph.query(READ_CITIES, at="v1"),
        lambda: graph.explain(READ_CITIES),
        lambda: graph.entity("node:City", "Oslo"),
        lambda: graph.entity("node:City", "Oslo", at="v1"),
        lambda: graph.export(),
        lambda: graph.export(types=["City"]),
        lambda: graph.diff("v1", "main"),
        lambda: graph.history.blame("City", "Oslo"),
        lambda: graph.history.entity("node:City", "Oslo"),
        lambda: graph.history.changes("main", start="beginning"),
        lambda: graph.history.baseline("main"),
        lambda: graph.spark.analyze("pagerank"),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden, match="on type '"):
            attempt()
    assert list(graph.export(types=["Person"]))


def test_a_denied_type_is_not_written_in_any_way(where: Path) -> None:
    graph = as_actor(where, "bot")
    graph.branches.create("agents/bot/1")
    own = graph.branch("agents/bot/1")
    head = graph.snapshot("agents/bot/1").commit_id
    record = [{"type": "City", "data": {"name": "Lima"}}]
    with pytest.raises(Forbidden, match="on type 'City'"):
        own.mutate('query w() { insert City { name: "Rome" } }')
    with pytest.raises(Forbidden, match="on type 'City'"), own.write() as batch:
        batch.insert("City", {"name": "Rome"})
    with pytest.raises(Forbidden, match="on type 'City'"):
        graph.load(record, mode="append", branch="agents/bot/1")
    with pytest.raises(Forbidden, match="on type 'City'"):
        graph.load(record, mode="append", branch="agents/bot/2", from_="main")
    assert graph.snapshot("agents/bot/1").commit_id == head


def test_a_merge_that_needs_approvals_is_not_made_directly(where: Path) -> None:
    graph = as_actor(where, "ana")
    graph.mutate(WRITE, branch="dev")
    with pytest.raises(Forbidden, match="needs approvals: 1 of group 'people'"):
        graph.merge("dev", "main")
    assert graph.merge("dev", "main", dry_run=True).commit is None


def test_a_handle_keeps_its_policy_when_it_is_pickled(where: Path) -> None:
    graph = pickle.loads(pickle.dumps(as_actor(where, "bot")))
    assert len(graph.query(READ).rows()) == 2
    with pytest.raises(Forbidden):
        graph.mutate(WRITE)


def test_a_policy_that_is_wrong_opens_nothing(where: Path) -> None:
    (where / "team.policy.yaml").write_text("version: 1\nrule: []\n")
    with pytest.raises(InvalidInput, match="rule: unknown key"):
        as_actor(where, "ana")


def test_a_query_is_not_prepared_where_rules_name_types(where: Path) -> None:
    with pytest.raises(NotAvailable, match="rules about types"):
        as_actor(where, "bot").prepare(READ)
