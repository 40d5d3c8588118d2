"""Store faults F-1 … F-10, each with the outcome it must have, on local disk and on S3."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.storage.small_disk import mounted
from tests.support.crash import Pair, converge, stop_writer
from tests.support.crash_writers import (
    ids,
    insert_neighbourhood,
    make_graph,
    neighbourhood,
    rows,
    update_two_types,
    updated,
)
from tests.support.faulty import Fault, FaultyStore
from tests.support.internals import graph_on
from tests.support.promises import Expected, broken_promises, pending_operations
from tests.support.s3server import S3Fault, S3Server
from tests.support.stores import open_objects

import omnigraph
from omnigraph import Graph
from omnigraph.catalog import publisher
from omnigraph.catalog.repository import Repository
from omnigraph.errors import (
    OmnigraphError,
    OutcomeUnknown,
    PermissionDenied,
    StorageFailure,
    StorageFull,
)
from omnigraph.storage import failpoints
from omnigraph.storage.failpoints import FailpointError
from omnigraph.storage.locations import parse_location

RECORDS = "__recovery/*"
WAIT_S_MAX = 60.0


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "g")
    return f"{request.getfixturevalue('bucket')}/g"


@pytest.fixture
def store(uri: str) -> FaultyStore:
    make_graph(uri)
    return FaultyStore(open_objects(parse_location(uri)))


@pytest.fixture
def graph(store: FaultyStore) -> Graph:
    return graph_on(Repository.open(store.location, objects=store))


@pytest.fixture(autouse=True)
def nothing_stays_armed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


def audited(graph: Graph) -> frozenset[str]:
    return frozenset(row["operation_id"] for row in graph.maintenance.recoveries())


def assert_at_rest(graph: Graph) -> None:
    """Every promise holds; what the audit says is the only thing that was recovered."""
    assert broken_promises(graph.uri, Expected(recovered=audited(graph))) == []


def assert_writable(graph: Graph) -> None:
    """The same handle writes all types again, and everything is as promised."""
    insert_neighbourhood(graph, 9, "main")
    update_two_types(graph, 9, "main")
    assert all(neighbourhood(graph, 9, "main").values())
    assert all(updated(graph, 9, "main").values())
    assert_at_rest(graph)


# -- F-1 phase A -----------------------------------------------------------------------------------


def test_F_1_a_record_that_cannot_be_put_aborts_the_write_without_a_trace(
    store: FaultyStore, graph: Graph
) -> None:
    store.inject(Fault.fail("put_if_absent", RECORDS))
    with pytest.raises(StorageFailure):
        insert_neighbourhood(graph, 0, "main")
    assert not any(neighbourhood(graph, 0, "main").values())
    assert pending_operations(graph.uri) == set()
    assert_at_rest(graph)
    assert audited(graph) == frozenset()
    assert_writable(graph)


def test_F_1_a_record_whose_put_is_not_answered_is_cleared_away_by_the_next_write(
    store: FaultyStore, graph: Graph
) -> None:
    store.inject(Fault.lose_answer("put_if_absent", RECORDS))
    with pytest.raises(OutcomeUnknown):
        insert_neighbourhood(graph, 0, "main")
    assert not any(neighbourhood(graph, 0, "main").values())
    assert_writable(graph)
    assert not any(neighbourhood(graph, 0, "main").values())


# -- F-2 phase B -----------------------------------------------------------------------------------


@pytest.mark.parametrize("failpoint", ["table.before_commit", "table.after_commit"])
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_F_2_a_write_that_fails_between_tables_heals_on_the_same_handle(
    graph: Graph, failpoint: str, nth: int
) -> None:
    failpoints.arm(failpoint, "error", nth=nth)
    complete = (failpoint, nth) == ("table.after_commit", 4)
    if complete:  # nothing but the publish is missing: the owner finishes it itself
        insert_neighbourhood(graph, 0, "main")
    else:
        with pytest.raises(FailpointError):
            insert_neighbourhood(graph, 0, "main")
    assert set(neighbourhood(graph, 0, "main").values()) == {complete}
    assert pending_operations(graph.uri) == set()
    assert_at_rest(graph)
    assert_writable(graph)


def test_F_2_a_write_that_can_neither_go_on_nor_be_undone_is_undone_by_the_next_one(
    graph: Graph,
) -> None:
    failpoints.arm("table.before_commit", "error", nth=3)
    failpoints.arm("recovery.before_publish", "error")
    with pytest.raises(StorageFailure):
        insert_neighbourhood(graph, 0, "main")
    (left,) = pending_operations(graph.uri)
    assert not any(neighbourhood(graph, 0, "main").values())
    failpoints.disarm_all()
    assert_writable(graph)
    assert audited(graph) == {left}
    assert not any(neighbourhood(graph, 0, "main").values())


# -- F-3 phase C -----------------------------------------------------------------------------------


def test_F_3_a_publish_that_lost_to_another_writer_is_undone_and_reported(
    graph: Graph, tmp_path: Path
) -> None:
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    flag = tmp_path / "before the publish"
    failpoints.arm("publish.before_commit", f"pause:{flag}")
    failures: list[OmnigraphError] = []
    writer = threading.Thread(target=_move_to, args=(graph, "Rome", failures))
    writer.start()
    _wait_for(flag.exists)
    failpoints.disarm_all()
    with omnigraph.open(graph.uri).write() as w:
        w.delete("City", "Rome")  # the other end of the edge that is about to be published
    flag.unlink()
    writer.join()
    (failure,) = failures
    assert "Rome" in failure.message
    assert [row["dst"] for row in rows(graph, "edge:LivesIn")].count("Rome") == 0
    assert_at_rest(graph)
    assert len(audited(graph)) == 1
    assert_writable(graph)


def _move_to(graph: Graph, city: str, failures: list[OmnigraphError]) -> None:
    try:
        with graph.write() as w:
            w.insert_edge("LivesIn", "bo", city)
    except OmnigraphError as error:
        failures.append(error)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


# -- F-4 phase D -----------------------------------------------------------------------------------


def test_F_4_a_record_that_cannot_be_deleted_does_not_fail_the_write(
    store: FaultyStore, graph: Graph
) -> None:
    store.inject(Fault.fail("delete", RECORDS))
    insert_neighbourhood(graph, 0, "main")
    assert all(neighbourhood(graph, 0, "main").values())
    (left,) = pending_operations(graph.uri)
    assert_writable(graph)
    assert audited(graph) == {left}


# -- F-5 listing -----------------------------------------------------------------------------------


def test_F_5_a_listing_that_fails_is_loud_at_every_door(store: FaultyStore, graph: Graph) -> None:
    store.inject(Fault.fail("list", "__recovery*", times=None))
    before = graph.snapshot()
    with pytest.raises(StorageFailure):
        insert_neighbourhood(graph, 0, "main")
    with pytest.raises(StorageFailure):
        graph.maintenance.recover()
    assert graph.snapshot() == before  # reads do not list
    store.clear()
    assert_writable(graph)


# -- F-7 audit -------------------------------------------------------------------------------------


def test_F_7_an_audit_that_fails_keeps_the_record_and_is_written_once(uri: str) -> None:
    scene = stop_writer(Pair("update", "publish.before_commit"), uri)
    failpoints.arm("recovery.after_publish", "error")
    with pytest.raises(FailpointError):
        omnigraph.open(uri)
    failpoints.disarm_all()
    assert pending_operations(uri) == scene.left
    assert omnigraph.open(uri, read_only=True).maintenance.recoveries() == []
    graph = omnigraph.open(uri)
    (told,) = graph.maintenance.recoveries()
    assert told["action"] == "rolled_forward"
    assert told["operation_id"] == told["commit_id"]
    assert broken_promises(uri, Expected(scene.before, scene.left)) == []


@pytest.mark.s3
def test_F_7_an_audit_the_store_refuses_keeps_the_record_and_is_written_once(
    bucket: str, s3: S3Server
) -> None:
    uri = f"{bucket}/g"
    scene = stop_writer(Pair("update", "publish.before_commit"), uri)
    s3.inject(S3Fault(kind="PUT", key="*_graph_commit_recoveries*", status=403, times=None))
    with pytest.raises(PermissionDenied):
        omnigraph.open(uri)
    assert pending_operations(uri) == scene.left
    s3.clear_faults()
    omnigraph.open(uri)
    assert broken_promises(uri, Expected(scene.before, scene.left)) == []


# -- F-8 kill --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [
        Pair("update", "record.after_put"),
        Pair("nodes and edges", "table.after_commit", 2),
        Pair("first write on a branch", "table.after_commit", 4),
        Pair("insert", "publish.after_commit"),
    ],
    ids=str,
)
def test_F_8_a_killed_writer_converges_on_every_store(pair: Pair, uri: str) -> None:
    assert converge(stop_writer(pair, uri)).violations == ()


# -- F-9 late, twice, not at all -------------------------------------------------------------------


def test_F_9_a_store_that_answers_late_only_takes_longer(store: FaultyStore, graph: Graph) -> None:
    store.inject(Fault.delay("*", "__recovery*", delay_ms=30, times=None))
    assert_writable(graph)


def test_F_9_a_store_that_never_answers_names_what_is_unknown(
    store: FaultyStore, graph: Graph
) -> None:
    store.inject(Fault.time_out("put_if_absent", RECORDS, times=None))
    with pytest.raises(OutcomeUnknown) as unknown:
        insert_neighbourhood(graph, 0, "main")
    assert "__recovery/" in unknown.value.message
    store.clear()
    assert not any(neighbourhood(graph, 0, "main").values())
    assert_writable(graph)


@pytest.mark.s3
@pytest.mark.parametrize(
    "place", ["*/nodes/*/_versions/*", "*/__manifest/_versions/*", "*/__recovery/*"]
)
def test_F_9_a_request_that_is_carried_out_twice_takes_effect_once(
    bucket: str, s3: S3Server, place: str
) -> None:
    graph = make_graph(f"{bucket}/g")
    commits = len(graph.history.commits())
    s3.inject(S3Fault(kind="PUT", key=place, action="drop", when="after"))
    insert_neighbourhood(graph, 0, "main")
    assert all(neighbourhood(graph, 0, "main").values())
    assert len(graph.history.commits()) == commits + 1
    assert_at_rest(graph)
    assert audited(graph) == frozenset()


@pytest.mark.s3
@pytest.mark.parametrize(
    "place", ["*/nodes/*/_versions/*", "*/__manifest/_versions/*", "*/__recovery/*"]
)
def test_F_9_a_store_that_stays_silent_is_given_up_with_a_typed_error(
    bucket: str, s3: S3Server, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = replace(publisher.PUBLISH_RETRY, attempts_min=2, deadline_s=0.1)
    monkeypatch.setattr(publisher, "PUBLISH_RETRY", impatient)
    graph = make_graph(f"{bucket}/g")
    s3.inject(S3Fault(kind="PUT", key=place, action="drop", times=None))
    with pytest.raises(StorageFailure) as failure:
        insert_neighbourhood(graph, 0, "main")
    assert failure.value.remedy
    s3.clear_faults()
    assert not any(neighbourhood(graph, 0, "main").values())
    assert_writable(graph)
    assert not any(neighbourhood(graph, 0, "main").values())


# -- F-10 full, forbidden --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [StorageFull, PermissionDenied])
@pytest.mark.parametrize("call", ["put_if_absent", "list"])
def test_F_10_a_store_that_refuses_is_a_typed_error_and_nothing_is_half_visible(
    store: FaultyStore, graph: Graph, error: type[StorageFailure], call: str
) -> None:
    store.inject(Fault.fail(call, "__recovery*", error=error))  # type: ignore[arg-type]
    with pytest.raises(error):
        insert_neighbourhood(graph, 0, "main")
    assert not any(neighbourhood(graph, 0, "main").values())
    assert_writable(graph)


def test_F_10_a_version_that_may_not_be_looked_up_is_not_taken_for_missing(
    store: FaultyStore, graph: Graph
) -> None:
    store.inject(Fault.fail("exists", "*/_versions/*", error=PermissionDenied, times=None))
    with pytest.raises(PermissionDenied):
        graph.snapshot()
    with pytest.raises(PermissionDenied):
        insert_neighbourhood(graph, 0, "main")
    store.clear()
    assert not any(neighbourhood(graph, 0, "main").values())
    assert_writable(graph)


def test_F_10_a_disk_that_runs_full_anywhere_in_a_write_leaves_all_of_it_or_nothing(
    tmp_path: Path,
) -> None:
    with mounted(tmp_path / "disk", size="16m") as disk:
        graph = make_graph(str(disk / "g"))
        refused = 0
        for pages_free in range(PAGES_MAX):
            _fill(disk / "ballast", pages_free)
            failure = _attempt(graph, pages_free)
            assert "ana" in ids(graph, "node:Person")  # reads go on
            (disk / "ballast").unlink()
            if failure is None:
                break
            refused += 1
            update_two_types(graph, pages_free, "main")  # works again with space
            visible = set(neighbourhood(graph, pages_free, "main").values())
            assert visible == {False} or (isinstance(failure, OutcomeUnknown) and len(visible) == 1)
            assert_at_rest(graph)
        assert failure is None
        assert refused > 10
        assert_writable(graph)


PAGES_MAX = 400
PAGE_BYTES = 4096


def _attempt(graph: Graph, number: int) -> StorageFailure | None:
    try:
        insert_neighbourhood(graph, number, "main")
    except StorageFailure as failure:
        return failure
    return None


def _fill(ballast: Path, pages_free: int) -> None:
    """Take all space but this many pages."""
    handle = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        with contextlib.suppress(OSError):
            while os.write(handle, b"\0" * PAGE_BYTES):
                pass
        os.ftruncate(handle, max(0, os.lseek(handle, 0, os.SEEK_CUR) - pages_free * PAGE_BYTES))
    finally:
        os.close(handle)
