"""The default actor of writes that name none."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import PEOPLE, people_graph
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph


def newest(graph: Graph, branch: str = "main") -> str | None:
    return graph.history.commits(branch, limit=1)[0].actor


def _write(graph: Graph, **who: Any) -> None:
    with graph.write(**who) as w:
        w.insert("City", {"name": "Rome"})


def _on_a_branch(graph: Graph) -> str:
    graph.branches.create("dev")
    with graph.write("dev", actor="other") as w:
        w.update("Person", "ana", {"age": 99})
    return graph.history.commits("dev", limit=1)[0].commit_id


def _merge(graph: Graph, **who: Any) -> None:
    _on_a_branch(graph)
    graph.merge("dev", **who)


def _cherry_pick(graph: Graph, **who: Any) -> None:
    graph.cherry_pick(_on_a_branch(graph), **who)


def _revert(graph: Graph, **who: Any) -> None:
    graph.revert(graph.history.commits(limit=1)[0].commit_id, **who)


def _restore(graph: Graph, **who: Any) -> None:
    start = graph.history.commits(limit=1)[0].commit_id
    with graph.write(actor="other") as w:
        w.update("Person", "ana", {"age": 99})
    graph.restore(start, {"node:Person": ["ana"]}, **who)


def _reset(graph: Graph, **who: Any) -> None:
    start = graph.history.commits(limit=1)[0].commit_id
    with graph.write(actor="other") as w:
        w.update("Person", "ana", {"age": 99})
    graph.reset(start, "main", **who)


def _schema(graph: Graph, **who: Any) -> None:
    graph.apply_schema(PEOPLE + "node Pet { name: String @key }\n", **who)


def _mutate(graph: Graph, **who: Any) -> None:
    graph.mutate('query q() { insert City { name: "Rome" } }', **who)


def _load(graph: Graph, **who: Any) -> None:
    graph.load({"City": [{"name": "Rome"}]}, mode="append", **who)


def _purge(graph: Graph, **who: Any) -> None:
    graph.maintenance.purge("node", "Person", "bo", confirm=True, **who)


WRITES = [
    _write,
    _mutate,
    _load,
    _merge,
    _cherry_pick,
    _revert,
    _restore,
    _reset,
    _schema,
    _purge,
]


@pytest.mark.parametrize("write", WRITES, ids=[write.__name__[1:] for write in WRITES])
def test_every_commit_has_the_actor_that_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., None]
) -> None:
    for number, (handle, environment, said, recorded) in enumerate(
        [
            (None, "environment", None, "environment"),
            ("handle", "environment", None, "handle"),
            ("handle", None, "caller", "caller"),
            (None, None, None, None),
        ]
    ):
        people_graph(tmp_path / str(number))
        monkeypatch.delenv("OMNIGRAPH_ACTOR", raising=False)
        if environment is not None:
            monkeypatch.setenv("OMNIGRAPH_ACTOR", environment)
        graph = omnigraph.open(tmp_path / str(number), actor=handle)
        write(graph, **({} if said is None else {"actor": said}))
        assert newest(graph) == recorded


def test_tags_branches_and_the_first_commit_have_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ACTOR", " env ")
    graph = omnigraph.init(tmp_path / "g", PEOPLE)
    assert newest(graph) == "env"
    assert graph.tags.create("v1").actor == "env"
    assert graph.branches.create("dev").actor == "env"
    assert graph.branches.create("mine", actor="me").actor == "me"
    graph.load({"City": [{"name": "Rome"}]}, mode="append", branch="new", from_="main")
    branches = {name: repository_of(graph).branch(name).actor for name in ("dev", "mine", "new")}
    assert branches == {"dev": "env", "mine": "me", "new": "env"}


def test_a_handle_that_travels_keeps_its_actor(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    graph = pickle.loads(pickle.dumps(omnigraph.open(tmp_path / "g", actor="ann")))
    _write(graph)
    assert newest(graph) == "ann"
