"""Records that cannot be resolved (F-6, R-6): they block writes to their branch, never reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.crash import Pair, stop_writer
from tests.support.crash_writers import ids, make_graph
from tests.support.promises import Expected, broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import CorruptData
from omnigraph.transaction import transaction
from omnigraph.transaction.ownership import Owner
from omnigraph.transaction.recovery.record import RECORD_FORMAT, RecoveryRecord, recovery_prefix

ELSEWHERE = Owner("another host", 1, "1")
WAIT_S = 600.0  # what a writer would wait for another one
PATIENCE_S = 60.0  # what a test may take that waits for nobody, on a very busy machine


def _corrupt(record: bytes) -> bytes:
    return b"\x00\xff not a record"


def _truncated(record: bytes) -> bytes:
    return record[: len(record) // 2]


def _empty(record: bytes) -> bytes:
    return b""


def _newer(record: bytes) -> bytes:
    return json.dumps({**json.loads(record), "format": RECORD_FORMAT + 1}).encode()


def _of_another_shape(record: bytes) -> bytes:
    return json.dumps({"format": RECORD_FORMAT, "tables": [1, 2]}).encode()


DAMAGES = [_corrupt, _truncated, _empty, _newer, _of_another_shape]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a writer that died in phase B leaves."""
    place = tmp_path_factory.mktemp("killed") / "g"
    scene = stop_writer(Pair("update", "table.before_commit", 2), str(place))
    (path,) = (place / "__recovery" / "main").glob("*.json")
    assert path.stem in scene.left
    return path.read_bytes()


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setenv("OMNIGRAPH_LEASE_SECONDS", str(WAIT_S))
    graph = make_graph(str(tmp_path / "g"))
    graph.branches.create("a")
    graph.branches.create("b")
    return graph


def put_record(graph: Graph, branch: str, data: bytes, name: str = "01UNREADABLE") -> Path:
    incarnation = graph.snapshot(branch).branch.incarnation
    path = Path(graph.uri) / recovery_prefix(incarnation) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def insert(graph: Graph, branch: str, name: str) -> None:
    with graph.write(branch) as w:
        w.insert("Person", {"name": name})


@pytest.fixture
def promptly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails when the test waits for another writer."""
    for name in ("OWNER_WAIT", "DECISION_POLL"):
        policy = replace(getattr(transaction, name), deadline_s=WAIT_S)
        monkeypatch.setattr(transaction, name, policy)
    started = time.monotonic()
    yield
    assert time.monotonic() - started < PATIENCE_S


@pytest.mark.parametrize("damage", DAMAGES)
def test_F_6_reads_work_everywhere_beside_an_unreadable_record(
    graph: Graph, record: bytes, damage: Callable[[bytes], bytes], promptly: None
) -> None:
    path = put_record(graph, "a", damage(record))
    for handle in (graph, omnigraph.open(graph.uri), omnigraph.open(graph.uri, read_only=True)):
        for branch in ("main", "a", "b"):
            assert "ana" in ids(handle, "node:Person", branch)
    assert path.exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_F_6_other_branches_are_written_beside_an_unreadable_record(
    graph: Graph, record: bytes, damage: Callable[[bytes], bytes], promptly: None
) -> None:
    put_record(graph, "a", damage(record))
    insert(graph, "b", "warm")
    insert(omnigraph.open(graph.uri), "b", "fresh")
    insert(omnigraph.open(graph.uri), "main", "fresh")
    assert {"warm", "fresh"} <= ids(graph, "node:Person", "b")
    assert "fresh" in ids(graph, "node:Person", "main")


@pytest.mark.parametrize("damage", DAMAGES)
def test_F_6_writes_to_its_branch_are_refused_and_the_file_is_named_and_kept(
    graph: Graph, record: bytes, damage: Callable[[bytes], bytes], promptly: None
) -> None:
    path = put_record(graph, "a", damage(record))
    content = path.read_bytes()
    for handle in (graph, omnigraph.open(graph.uri)):
        with pytest.raises(CorruptData) as refused:
            insert(handle, "a", "zoe")
        assert path.name in refused.value.message
        assert str(path).endswith(refused.value.details["path"])
        assert "set-aside" in refused.value.remedy
    assert path.read_bytes() == content
    assert "zoe" not in ids(graph, "node:Person", "a")


def test_F_6_setting_an_unreadable_record_aside_frees_the_branch_and_keeps_the_file(
    graph: Graph, record: bytes
) -> None:
    path = put_record(graph, "a", _truncated(record))
    content = path.read_bytes()
    told = graph.maintenance.recover(set_aside=True)
    assert [Path(p).name for p in told.set_aside] == [path.name]
    insert(graph, "a", "zoe")
    kept = list(Path(graph.uri).rglob(path.name))
    assert [p.read_bytes() for p in kept] == [content]
    (audited,) = graph.maintenance.recoveries()  # setting aside leaves a row
    recovered = frozenset({audited["operation_id"]})
    assert broken_promises(graph.uri, Expected(recovered=recovered)) == []


def test_a_pending_write_of_another_host_delays_neither_reads_nor_other_types_nor_branches(
    graph: Graph, record: bytes, promptly: None
) -> None:
    incarnation = graph.snapshot("a").branch.incarnation
    alive = replace(
        RecoveryRecord.from_bytes(record, "here"),
        owner=ELSEWHERE,
        branch="a",
        branch_incarnation=incarnation,
    )
    path = put_record(graph, "a", alive.to_bytes(), alive.operation_id)
    handle = omnigraph.open(graph.uri)
    assert handle.maintenance.recovered_at_open.resolved == []
    for branch in ("main", "a", "b"):
        assert "ana" in ids(handle, "node:Person", branch)
    insert(handle, "b", "zoe")
    insert(handle, "main", "zoe")
    insert(handle, "a", "zoe")  # it moved no table of this branch, so nobody has to wait for it
    assert path.exists()


@pytest.mark.parametrize("rest", ["claim-1", "lease", "abort"])
def test_what_is_left_of_a_record_that_is_gone_is_swept_by_the_next_write(
    graph: Graph, rest: str
) -> None:
    path = put_record(graph, "main", b"{}", f"01GONE.{rest}")
    omnigraph.open(graph.uri, read_only=True).maintenance.pending_writes()
    assert path.exists()  # looking changes nothing
    insert(graph, "main", "zoe")
    assert not path.exists()
    assert broken_promises(graph.uri) == []
