"""Recovery of a whole graph: pending writes, their outlook, and unreadable records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.graphs import people_graph, rows
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import CorruptData, StorageFailure
from omnigraph.storage import failpoints
from omnigraph.storage.failpoints import FailpointError

TWO_TYPES = """
import omnigraph, sys
graph = omnigraph.open(sys.argv[1])
with graph.write(sys.argv[2], message="half", actor="unlucky") as w:
    w.insert("City", {"name": "Rome"})
    w.insert("Person", {"name": "zoe"})
"""


def die(graph: Graph, failpoint: str, branch: str = "main") -> None:
    """Write two types and be killed at a failpoint."""
    environment = {**os.environ, failpoints.ENVIRONMENT: f"{failpoint}=kill"}
    finished = subprocess.run(
        [sys.executable, "-c", TWO_TYPES, graph.uri, branch], env=environment, check=False
    )
    assert finished.returncode == -9


def record_of(graph: Graph) -> Path:
    """The one recovery record there is."""
    (path,) = [
        path for path in Path(graph.uri, "__recovery").rglob("*.json") if path.name.count(".") == 1
    ]
    return path


@pytest.mark.parametrize(
    ("failpoint", "outlook", "action", "people"),
    [
        ("record.after_put", "rolled back", "rolled_back", {"ana", "bo"}),
        ("table.after_commit", "rolled back", "rolled_back", {"ana", "bo"}),
        ("publish.before_commit", "rolled forward", "rolled_forward", {"ana", "bo", "zoe"}),
        ("publish.after_commit", "it is published", "rolled_forward", {"ana", "bo", "zoe"}),
    ],
)
def test_what_is_foretold_is_what_happens(
    tmp_path: Path, failpoint: str, outlook: str, action: str, people: set[str]
) -> None:
    graph = people_graph(tmp_path / "g")
    die(graph, failpoint)
    (pending,) = omnigraph.open(graph.uri, read_only=True).maintenance.pending_writes()
    assert pending.state == "abandoned"
    assert outlook in pending.outlook
    assert (pending.kind, pending.actor, pending.branch) == ("write", "unlucky", "main")
    (resolved,) = graph.maintenance.recover().resolved
    assert (resolved.action, resolved.operation_id) == (action, pending.operation_id)
    assert set(rows(graph, "node:Person")) == people
    assert graph.maintenance.pending_writes() == []
    (audit,) = graph.maintenance.recoveries()
    assert (audit["operation_id"], audit["action"]) == (pending.operation_id, action)
    assert audit["cause"] == "owner_gone"


def test_R_7_a_rolled_forward_commit_keeps_its_id_and_actor(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    die(graph, "publish.before_commit")
    (resolved,) = graph.maintenance.recover().resolved
    commit = graph.history.commit(resolved.operation_id)
    assert (commit.actor, commit.message) == ("unlucky", "half")
    assert commit.recovered_by == "omnigraph:recovery"


def test_R_7_a_roll_back_is_a_commit_of_recovery_itself(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    die(graph, "table.after_commit")
    graph.maintenance.recover()
    newest = graph.history.commits(limit=1)[0]
    assert (newest.kind, newest.actor) == ("rollback", "omnigraph:recovery")


def test_a_write_in_progress_is_left_alone(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    flag = tmp_path / "paused"
    environment = {**os.environ, failpoints.ENVIRONMENT: f"table.after_commit=pause:{flag}"}
    child = subprocess.Popen([sys.executable, "-c", TWO_TYPES, graph.uri, "main"], env=environment)
    try:
        while not flag.exists():
            assert child.poll() is None
        (pending,) = graph.maintenance.pending_writes()
        assert pending.state == "in progress"
        assert graph.maintenance.recover().resolved == []
    finally:
        flag.unlink(missing_ok=True)
    assert child.wait() == 0
    assert "zoe" in rows(graph, "node:Person")


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _not_json(path: Path) -> None:
    path.write_bytes(b"\x00\xff")


def _from_the_future(path: Path) -> None:
    body = json.loads(path.read_bytes())
    path.write_text(json.dumps({**body, "format": 99}))


@pytest.mark.parametrize("damage", [_truncate, _not_json, _from_the_future])
def test_F_6_an_unreadable_record_refuses_writes_to_its_branch_only(
    tmp_path: Path, damage: object
) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("other")
    die(graph, "table.after_commit")
    path = record_of(graph)
    damage(path)  # type: ignore[operator]
    content = path.read_bytes()

    again = omnigraph.open(graph.uri)
    assert set(rows(again, "node:Person")) == {"ana", "bo"}
    with again.write("other") as w:
        w.insert("Person", {"name": "on other"})
    with pytest.raises(CorruptData) as refusal, again.write() as w:
        w.insert("Person", {"name": "on main"})
    assert path.name in refusal.value.message
    assert "--set-aside" in refusal.value.remedy
    (pending,) = again.maintenance.pending_writes()
    assert pending.state == "unreadable"
    assert again.maintenance.recover().unreadable == [str(path.relative_to(graph.uri))]
    assert path.read_bytes() == content


def test_R_6_damage_on_one_branch_does_not_keep_the_graph_from_being_opened(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("b")
    failpoints.arm("table.after_commit", "error")
    failpoints.arm("recovery.before_publish", "error")
    with pytest.raises(FailpointError), graph.write("b") as w:
        w.insert("City", {"name": "Rome"})
    failpoints.disarm_all()
    forks = tmp_path / "g" / graph.snapshot().pin("node:City").ref.path / "tree"
    newest = min(forks.glob("*/_versions/*.manifest"))  # names count down
    newest.write_bytes(bytes(newest.stat().st_size))
    again = omnigraph.open(tmp_path / "g")
    assert isinstance(again.maintenance.recovered_at_open.unresolved["b"], CorruptData)
    with again.write() as w:
        w.insert("City", {"name": "Bern"})
    with pytest.raises(CorruptData), again.write("b") as w:
        w.insert("City", {"name": "Bern"})


@pytest.mark.parametrize(
    "failpoint",
    ["record.after_put", "table.after_commit", "publish.before_commit", "publish.after_commit"],
)
def test_setting_an_unreadable_record_aside_undoes_its_write_and_keeps_the_file(
    tmp_path: Path, failpoint: str
) -> None:
    graph = people_graph(tmp_path / "g")
    die(graph, failpoint)
    path = record_of(graph)
    _truncate(path)
    done = graph.maintenance.recover(set_aside=True)
    assert done.set_aside == [str(path.relative_to(graph.uri))]
    assert not path.exists()
    (kept,) = Path(graph.uri, "__recovery_set_aside").rglob("*.json")
    assert kept.name == path.name
    published = failpoint == "publish.after_commit"
    assert ("zoe" in rows(graph, "node:Person")) == published
    with graph.write() as w:
        w.replace("Person", {"name": "zoe", "age": 1})
        w.replace("City", {"name": "Rome"})
    assert rows(graph, "node:Person")["zoe"]["age"] == 1


def test_a_write_reported_as_failed_is_never_rolled_forward_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = people_graph(tmp_path / "g")

    def refuse(*_: object) -> None:
        raise StorageFailure("the manifest cannot be written")

    with monkeypatch.context() as broken:
        broken.setattr(repository_of(graph).main, "publish", refuse)
        with pytest.raises(StorageFailure), graph.write() as w:
            w.insert("City", {"name": "Rome"})
    (pending,) = graph.maintenance.pending_writes()
    assert "rolled back" in pending.outlook
    with graph.write() as w:
        w.insert("City", {"name": "Bern"})
    assert set(rows(graph, "node:City")) == {"Oslo", "Bern"}
    assert graph.maintenance.pending_writes() == []
