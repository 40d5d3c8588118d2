"""Recovery interrupted, repeated or run concurrently: resolutions are final (R-5 … R-10)."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.crash import Pair, Scene, kill_recovery, stop_writer
from tests.support.crash_writers import make_graph, rows
from tests.support.promises import Expected, broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row, RowKind
from omnigraph.catalog.schemas import load_schema
from omnigraph.constraints import TypeImage
from omnigraph.prepare.preparer import Preparer
from omnigraph.storage import failpoints
from omnigraph.storage.failpoints import FailpointError
from omnigraph.storage.lance.staging.rows import stage_restore, stage_update
from omnigraph.storage.lance.tables import OPERATION_PROPERTY
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.recovery.drift import ROLLBACK_PREFIX
from omnigraph.transaction.transaction import WriteTransaction

HALF_DONE = Pair("update", "table.before_commit", 2)  # City has moved, Person has not


@pytest.fixture(autouse=True)
def nothing_stays_armed():
    yield
    failpoints.disarm_all()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return stop_writer(HALF_DONE, str(tmp_path_factory.mktemp("killed") / "g"))


@pytest.fixture
def scene(killed: Scene, tmp_path: Path) -> Scene:
    return killed.copied_to(str(tmp_path / "g"))


def city_size(graph: Graph) -> int:
    return next(row["size"] for row in rows(graph, "node:City") if row["id"] == "Oslo")


def write_city(repository: Repository, size: int) -> None:
    """An ordinary write that does not come by recovery on its way in."""
    snapshot = repository.snapshot(repository.branch("main"))
    schema = load_schema(repository.main.current(), snapshot.schema_hash)
    table = repository.tables.open(snapshot.pin("node:City").ref)
    values = table.scan().to_pylist()
    changed = pa.Table.from_pylist([{**v, "size": size} for v in values], schema=table.schema)
    image = {"node:City": TypeImage(changed)}
    prepared = Preparer(repository, snapshot, schema).prepare(image, WriteInfo("write"))
    assert WriteTransaction(repository).commit(prepared) is not None


def test_a_resolver_killed_after_its_publish_still_leaves_a_true_audit_row(scene: Scene) -> None:
    trial = kill_recovery(scene, "recovery.after_publish")
    assert trial.violations == ()
    (told,) = omnigraph.open(scene.uri).maintenance.recoveries()
    assert told["commit_id"] is not None
    assert told["cause"] == "resolver_gone"
    assert told["types"] == {"node:City": "rolled back", "node:Person": "had not moved"}


def test_a_restore_that_comes_after_a_newer_write_never_takes_its_place(scene: Scene) -> None:
    repository = Repository.open(parse_location(scene.uri))
    before = repository.snapshot(repository.branch("main")).pin("node:City")
    failpoints.arm("recovery.after_publish", "error")
    with pytest.raises(FailpointError):
        omnigraph.open(scene.uri)  # undoes it, dies before the audit: the record stays
    failpoints.disarm_all()
    write_city(repository, 55)
    (operation,) = scene.left
    _restore_late(repository, before.ref.version, operation)
    graph = omnigraph.open(scene.uri)
    assert city_size(graph) == 55
    assert broken_promises(scene.uri, Expected(scene.before, scene.left)) == []


def test_a_late_restore_of_a_write_that_was_published_is_undone_by_the_next_writer(
    tmp_path: Path,
) -> None:
    graph = make_graph(str(tmp_path / "g"))
    repository = Repository.open(parse_location(graph.uri))
    before = repository.snapshot(repository.branch("main")).pin("node:City")
    write_city(repository, 55)
    newest = graph.history.commits(limit=1)[0].commit_id
    _restore_late(repository, before.ref.version, newest)
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    assert city_size(graph) == 55
    assert broken_promises(graph.uri) == []


def test_two_writers_that_meet_the_same_refuse_both_get_through(tmp_path: Path) -> None:
    graph = make_graph(str(tmp_path / "g"))
    repository = Repository.open(parse_location(graph.uri))
    _move_city_as_abandoned(repository, "01ABANDONED")
    flag = tmp_path / "first healer waits"
    failpoints.arm("recovery.before_restore", f"pause:{flag}")
    first = threading.Thread(target=_insert, args=(omnigraph.open(graph.uri), "Rome"))
    first.start()
    while not flag.exists():
        assert first.is_alive()
    _insert(graph, "Paris")  # heals and writes while the first one waits
    flag.unlink()
    first.join()
    _insert(graph, "Bern")
    names = {row["id"] for row in rows(graph, "node:City")}
    assert names == {"Oslo", "Rome", "Paris", "Bern"}
    assert broken_promises(graph.uri) == []


def _insert(graph: Graph, name: str) -> None:
    with graph.write() as w:
        w.insert("City", {"name": name})


def _restore_late(repository: Repository, version: int, operation: str) -> None:
    """What a resolver does that decided long ago and was asleep since."""
    pin = repository.snapshot(repository.branch("main")).pin("node:City")
    newest = repository.tables.open(repository.tables.newest_from(pin.ref))
    properties = {OPERATION_PROPERTY: ROLLBACK_PREFIX + operation}
    repository.tables.commit(stage_restore(newest, version, pin.rows, properties))


def _move_city_as_abandoned(repository: Repository, operation: str) -> None:
    mark = Row(f"abandoned:{operation}", RowKind.ABANDONED)
    repository.main.publish(Publication("01MARK", "main", put=(mark,)))
    table = repository.tables.open(repository.main.current().pins["node:City"].ref)
    properties = {OPERATION_PROPERTY: operation}
    staged = stage_update(table, table.scan(), properties, type_key="node:City")
    repository.tables.commit(staged)
