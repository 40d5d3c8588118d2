"""Opening and writing to graphs of older and newer formats (I-1, I-2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from tests.catalog.migrations.old import SIDE, VERSIONS, cities, format_of, lineage, old_graph
from tests.graphs import PEOPLE, files_below, people_graph, repository
from tests.support.internals import repository_of

import omnigraph
from omnigraph.catalog import manifest
from omnigraph.catalog.format import INTERNAL_VERSION_FLOOR, INTERNAL_VERSION_KEY
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.history.horizon import raise_horizon
from omnigraph.catalog.migrations.legacy import INERT_SINCE
from omnigraph.catalog.migrations.registry import STEPS, steps_from
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import Contention, FormatUnsupported, ReadOnly
from omnigraph.storage.lance.errors import CommitRefused


def stamp(where: Path, value: str | None, key: str = INTERNAL_VERSION_KEY) -> None:
    manifest = lance.dataset(where)
    updates = LanceOperation.UpdateMap({key: value})
    update = LanceOperation.UpdateConfig(schema_metadata_updates=updates)
    LanceDataset.commit(manifest, Transaction(manifest.version, update))


def test_I_1_a_new_graph_is_born_at_the_current_version(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", PEOPLE)
    assert format_of(graph) == INTERNAL_VERSION
    assert not graph.maintenance.upgrade().needed


@pytest.mark.parametrize("version", VERSIONS)
def test_I_1_opening_for_writing_takes_every_step_and_keeps_history_in_place(
    tmp_path: Path, version: int
) -> None:
    told = old_graph(tmp_path / "g", version)
    graph = omnigraph.open(tmp_path / "g")
    assert format_of(graph) == INTERNAL_VERSION
    manifest = lance.dataset(tmp_path / "g" / MANIFEST_PATH)
    key = manifest.schema.field("object_id").metadata[b"lance-schema:unenforced-primary-key"]
    assert key == b"true"
    assert not [name for name in manifest.branches.list() if name.startswith("__run__")]
    assert lineage(graph.history.commits()) == lineage(told["main"])
    assert graph.snapshot().commit_id == told["main"][-1].commit_id
    genesis, people, _ = told["main"]
    assert cities(graph, at=genesis.commit_id) == set()
    assert cities(graph, at="people") == cities(graph, at=people.commit_id) == {"Oslo"}
    assert format_of(graph, SIDE) == version  # nobody has written to it yet
    assert graph.maintenance.check().healthy


@pytest.mark.parametrize("version", [1, 3])
def test_I_1_a_branch_is_brought_on_by_its_first_write(tmp_path: Path, version: int) -> None:
    told = old_graph(tmp_path / "g", version)
    graph = omnigraph.open(tmp_path / "g")
    assert lineage(graph.history.commits(branch=SIDE)) == lineage(told[SIDE])
    with graph.write(SIDE) as w:
        w.insert("City", {"name": "Lima"})
    assert format_of(graph, SIDE) == INTERNAL_VERSION
    assert lineage(graph.history.commits(branch=SIDE))[:-1] == lineage(told[SIDE])
    assert cities(graph, SIDE) == {"Oslo", "Rome", "Lima"}
    graph.merge(SIDE)
    assert cities(graph) == {"Oslo", "Rome", "Lima"}
    assert graph.maintenance.check().healthy


@pytest.mark.parametrize("version", VERSIONS)
def test_I_1_and_R_11_reading_shows_an_older_graph_as_it_is_and_writes_nothing(
    tmp_path: Path, version: int
) -> None:
    told = old_graph(tmp_path / "g", version)
    before = files_below(tmp_path)
    graph = omnigraph.open(tmp_path / "g", read_only=True)
    assert format_of(graph) == version
    for branch in ("main", SIDE):
        assert lineage(graph.history.commits(branch=branch)) == lineage(told[branch])
    assert (cities(graph), cities(graph, SIDE)) == ({"Oslo"}, {"Oslo", "Rome"})
    assert cities(graph, at=told["main"][0].commit_id) == set()
    assert cities(graph, at="people") == {"Oslo"}
    assert [c.id for c in graph.diff("main", SIDE)] == ["Rome"]
    assert graph.branches.list() == ["main", SIDE]  # G-3: internal refs never show
    assert graph.snapshot().to_json()["internal_schema_version"] == version
    assert graph.maintenance.check().healthy
    assert graph.maintenance.upgrade().needed
    with pytest.raises(ReadOnly):
        graph.maintenance.upgrade(apply=True)
    assert files_below(tmp_path) == before


def test_I_1_a_reader_sees_an_upgrade_happen_and_stays_right(tmp_path: Path) -> None:
    told = old_graph(tmp_path / "g", 2)
    reader = omnigraph.open(tmp_path / "g", read_only=True)
    assert lineage(reader.history.commits()) == lineage(told["main"])
    with omnigraph.open(tmp_path / "g").write() as w:
        w.insert("City", {"name": "Lima"})
    assert lineage(reader.history.commits())[:-1] == lineage(told["main"])
    assert format_of(reader) == INTERNAL_VERSION
    assert cities(reader) == {"Oslo", "Lima"}


def test_I_1_the_steady_state_asks_nothing_of_the_store(tmp_path: Path) -> None:
    view = repository(people_graph(tmp_path / "g"))
    counters = view.tables.counters
    before = (counters.opens, counters.scans, counters.probes, counters.commits)
    view.main.migrate()
    assert (counters.opens, counters.scans, counters.probes, counters.commits) == before


def test_I_1_an_upgraded_graph_opens_at_the_cost_of_a_new_one(tmp_path: Path) -> None:
    people_graph(tmp_path / "new")
    old_graph(tmp_path / "old", 1)
    omnigraph.open(tmp_path / "old")
    costs = []
    for name in ("new", "old"):
        counters = repository_of(omnigraph.open(tmp_path / name)).tables.counters
        costs.append((counters.opens, counters.scans, counters.probes, counters.commits))
    assert costs[0] == costs[1]


def test_I_1_contention_inside_a_migration_feeds_the_publishers_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_graph(tmp_path / "g", 3)
    view = repository(omnigraph.open(tmp_path / "g"))
    branch = view.branch(SIDE)
    side, refusals = view.manifest(branch), [CommitRefused("another process")] * 3
    migrate = side.migrator.migrate

    def contended() -> None:
        if refusals:
            raise refusals.pop()
        migrate()

    monkeypatch.setattr(side.migrator, "migrate", contended)
    raise_horizon(side, branch, 1)  # a publish, and nothing before it
    assert (side.current().horizon, side.current().format) == (1, INTERNAL_VERSION)
    assert not refusals


def test_I_1_contention_without_end_is_a_typed_error_that_says_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_graph(tmp_path / "g", 3)
    view = repository(omnigraph.open(tmp_path / "g", read_only=True))
    monkeypatch.setattr(manifest, "PUBLISH_RETRY", replace(manifest.PUBLISH_RETRY, deadline_s=0.0))
    monkeypatch.setattr(view.main.migrator, "migrate", lambda: _raise(CommitRefused("again")))
    with pytest.raises(Contention) as gave_up:
        view.main.migrate()
    assert gave_up.value.retryable


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("found", [INTERNAL_VERSION + 1, INTERNAL_VERSION_FLOOR - 1])
def test_I_2_a_branch_above_the_ceiling_or_below_the_floor_is_refused(
    tmp_path: Path, found: int, read_only: bool
) -> None:
    graph = people_graph(tmp_path / "g")
    graph.branches.create(SIDE)
    ref = repository_of(graph).branch(SIDE).ref
    stamp(tmp_path / "g" / MANIFEST_PATH / "tree" / str(ref), str(found))
    opened = omnigraph.open(tmp_path / "g", read_only=read_only)
    assert cities(opened) == {"Oslo"}
    with pytest.raises(FormatUnsupported, match=str(found)) as refusal:
        opened.snapshot(SIDE)
    bound = INTERNAL_VERSION if found > INTERNAL_VERSION else INTERNAL_VERSION_FLOOR
    assert str(bound) in refusal.value.message
    assert refusal.value.remedy


def test_I_2_a_program_that_was_overtaken_stops_at_its_next_look(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    stamp(tmp_path / "g" / MANIFEST_PATH, str(INTERNAL_VERSION + 1))
    with pytest.raises(FormatUnsupported) as refusal:
        graph.snapshot()
    assert "Upgrade Omnigraph" in refusal.value.remedy
    with pytest.raises(FormatUnsupported), graph.write() as w:
        w.insert("City", {"name": "Lima"})


def test_I_2_the_floor_is_where_the_first_step_begins_and_no_step_is_missing() -> None:
    assert [s.source for s in STEPS] == list(range(INTERNAL_VERSION_FLOOR, INTERNAL_VERSION))
    assert steps_from(INTERNAL_VERSION) == ()
    assert max(INERT_SINCE.values()) <= INTERNAL_VERSION


def test_I_3_a_graph_of_another_implementation_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("object_id", pa.string(), nullable=False)])
    schema = schema.with_metadata({INTERNAL_VERSION_KEY: "3"})
    rows = schema.empty_table()
    lance.write_dataset(rows, tmp_path / "g" / MANIFEST_PATH, enable_stable_row_ids=True)
    for read_only in (True, False):
        with pytest.raises(FormatUnsupported, match="another implementation") as refusal:
            omnigraph.open(tmp_path / "g", read_only=read_only)
        assert "Export" in refusal.value.remedy
        assert "load" in refusal.value.remedy


@pytest.mark.parametrize("read_only", [True, False])
def test_I_3_and_D_4_datasets_without_stable_row_ids_are_refused(
    tmp_path: Path, read_only: bool
) -> None:
    old_graph(tmp_path / "g", 3)
    pin = omnigraph.open(tmp_path / "g", read_only=True).snapshot().pin("node:Person").ref
    place = tmp_path / "g" / pin.path
    rows = lance.dataset(place, version=pin.version).to_table()
    place.rename(tmp_path / "aside")
    for mode in ("create", *["append"] * (pin.version - 1)):
        lance.write_dataset(rows, place, mode=mode)
    before = files_below(tmp_path)
    with pytest.raises(FormatUnsupported, match="stable row ids") as refusal:
        omnigraph.open(tmp_path / "g", read_only=read_only)
    assert "Export" in refusal.value.remedy
    assert "load" in refusal.value.remedy
    assert files_below(tmp_path) == before
