"""Many processes write one graph: no write is lost or doubled, every conflict is reported.

Promises 2, 3, 4 and 8 of SAFETY.md. Real processes, started once for the whole module.
"""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import PEOPLE, files_below, many_types
from tests.support.s3server import S3Server
from tests.transaction import racing_writers as racing

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.repository import Repository
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

pytestmark = pytest.mark.slow

PROCESSES = 8
COMMITS_EACH = 50
S3_COMMITS_EACH = 10
CONFLICTS = {"published_dataset_version_conflict", "read_set_conflict", "contention"}
Race = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def pool() -> Iterator[tuple[ProcessPoolExecutor, Any]]:
    """Eight warm processes and a manager for their barriers."""
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        ProcessPoolExecutor(PROCESSES, mp_context=context) as executor,
    ):
        barrier = manager.Barrier(PROCESSES)
        jobs = [executor.submit(racing.warm_up, barrier) for _ in range(PROCESSES)]
        assert len({job.result(racing.WAIT_S) for job in jobs}) == PROCESSES
        yield executor, manager


@pytest.fixture
def race(pool: tuple[ProcessPoolExecutor, Any], request: pytest.FixtureRequest) -> Race:
    """Run a job in ``runners`` processes that wait for each other; returns what each returned."""
    executor, manager = pool

    def run(job: Callable[..., Any], *arguments: Any, runners: int = PROCESSES) -> list[Any]:
        barrier = manager.Barrier(runners)
        environment = request.node.funcargs.get("s3_environment", {})
        racers = [racing.Racer(barrier, number, environment) for number in range(runners)]
        jobs = [executor.submit(job, racer, *arguments) for racer in racers]
        return [job.result(racing.WAIT_S) for job in jobs]

    return run


@pytest.fixture
def s3_environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    return s3.environment()


@pytest.fixture
def bucket(s3: S3Server, s3_environment: dict[str, str]) -> str:
    return f"{s3.create_bucket('races')}/{uuid.uuid4().hex}"


# -- disjoint types -------------------------------------------------------------------------------


def test_P_3_writers_of_disjoint_types_all_land_in_one_chain(race: Race, tmp_path: Path) -> None:
    _disjoint_types(race, str(tmp_path / "graph"), COMMITS_EACH)


@pytest.mark.s3
def test_P_3_the_same_on_an_object_store(race: Race, bucket: str) -> None:
    _disjoint_types(race, bucket, S3_COMMITS_EACH)


def _disjoint_types(race: Race, uri: str, commits_each: int) -> None:
    omnigraph.init(uri, many_types(PROCESSES))

    messages = race(racing.insert_into_own_type, uri, commits_each)

    graph = omnigraph.open(uri)
    history = require_one_chain(graph)
    assert sorted(chain.from_iterable(messages)) == sorted(c.message for c in history[1:])
    assert len(history) == 1 + PROCESSES * commits_each
    for number in range(PROCESSES):
        assert stored_ids(graph, f"node:T{number}") == sorted(
            f"row {n}" for n in range(commits_each)
        )
    require_at_rest(graph)


# -- one type -------------------------------------------------------------------------------------


def test_W_6_of_the_writers_of_one_version_exactly_one_wins(race: Race, tmp_path: Path) -> None:
    _one_type(race, str(tmp_path / "graph"), COMMITS_EACH)


@pytest.mark.s3
def test_W_6_the_same_on_an_object_store(race: Race, bucket: str) -> None:
    _one_type(race, bucket, S3_COMMITS_EACH)


def _one_type(race: Race, uri: str, rounds: int) -> None:
    omnigraph.init(uri, many_types(1))

    outcomes = race(racing.race_on_one_type, uri, "node:T0", "insert", rounds)

    graph = omnigraph.open(uri)
    require_one_winner_each(outcomes, rounds)
    history = require_one_chain(graph)
    won = {commit_id for outcome in outcomes for _, commit_id, _ in outcome["won"]}
    assert {c.commit_id for c in history if c.kind == "race"} == won
    assert len(stored_ids(graph, "node:T0")) == rounds
    require_at_rest(graph)


# -- one key --------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [False, True], ids=["no index", "btree"])
@pytest.mark.parametrize("stage", ["same key", "same key and own row"])
def test_D_5_writers_of_the_same_new_key_store_it_once(
    race: Race, tmp_path: Path, stage: str, indexed: bool
) -> None:
    rounds, runners = 12, 4
    graph = omnigraph.init(tmp_path / "graph", many_types(1))
    for number in range(runners):  # a fragment for each
        with graph.write() as w:
            w.insert("T0", {"name": f"own {number}", "n": -1})
    if indexed:
        build_index(graph, "node:T0", "id")

    outcomes = race(racing.race_on_one_type, graph.uri, "node:T0", stage, rounds, runners=runners)

    require_one_winner_each(outcomes, rounds)
    expected = [f"key {n}" for n in range(rounds)] + [f"own {n}" for n in range(runners)]
    assert stored_ids(graph, "node:T0") == sorted(expected)
    table = table_of(graph, "node:T0")
    for id_ in expected:
        assert table.scan(["id"], f"id = '{id_}'").num_rows == 1
    require_at_rest(graph)


# -- endpoints ------------------------------------------------------------------------------------


def test_an_edge_never_outlives_its_endpoint(race: Race, tmp_path: Path) -> None:
    """DECISIONS 5: the two writers touch different tables, and still only one order is possible."""
    rounds = 40
    graph = omnigraph.init(tmp_path / "graph", PEOPLE)
    with graph.write() as w:
        for name in ["anchor", *(f"end {n}" for n in range(rounds))]:
            w.insert("Person", {"name": name})

    edges, deletions = race(racing.insert_edge_or_delete_end, graph.uri, rounds, runners=2)

    people = set(stored_ids(graph, "node:Person"))
    knows = table_of(graph, "edge:Knows").scan(["src", "dst"])
    ends = {*knows["src"].to_pylist(), *knows["dst"].to_pylist()}
    assert ends <= people, f"orphans: {ends - people}"
    for number, (edge, deletion) in enumerate(zip(edges, deletions, strict=True)):
        name = f"end {number}"
        assert "ok" in (edge, deletion), f"round {number}: {edge}, {deletion}"
        assert (name in people) == (deletion != "ok")
        if deletion != "ok":
            assert deletion in CONFLICTS
            assert name in ends
    require_one_chain(graph)
    require_at_rest(graph)


# -- init -----------------------------------------------------------------------------------------


def test_racing_inits_have_one_winner_and_leave_nothing_of_the_losers(
    race: Race, tmp_path: Path
) -> None:
    places = [tmp_path / f"graph {n}" for n in range(8)]

    outcomes = race(racing.initialise, [str(p) for p in places], PEOPLE, runners=3)

    for number, place in enumerate(places):
        results = [outcome[number] for outcome in outcomes]
        assert sorted(results) == ["graph_exists", "graph_exists", "ok"]
        graph = omnigraph.open(place)
        (genesis,) = graph.history.commits()
        assert genesis.actor == str(results.index("ok"))
        live = {pin.ref.path for pin in graph.snapshot().pins.values()}
        tables = {
            "/".join(name.split("/")[:2])
            for name in files_below(place)
            if name.startswith(("nodes/", "edges/"))
        }
        assert tables == live
        with graph.write() as w:
            w.insert("Person", {"name": "first"})


# -- what must hold afterwards --------------------------------------------------------------------


def require_one_chain(graph: Graph) -> list[Any]:
    """One genesis, every other commit the child of the one before; returns them oldest first."""
    history = list(reversed(graph.history.commits()))
    ids = [commit.commit_id for commit in history]
    assert len(set(ids)) == len(ids)
    assert [commit.parent for commit in history] == [None, *ids[:-1]]
    versions = [commit.manifest_version for commit in history]
    assert versions == sorted(set(versions))
    assert graph.snapshot().commit_id == ids[-1]
    return history


def require_one_winner_each(outcomes: list[dict[str, Any]], rounds: int) -> None:
    won = sorted(chain.from_iterable(outcome["won"] for outcome in outcomes))
    assert [number for number, _, _ in won] == list(range(rounds))
    assert len({version for _, _, version in won}) == rounds
    for outcome in outcomes:
        assert set(outcome["lost"]) <= CONFLICTS
        assert len(outcome["won"]) + sum(outcome["lost"].values()) == rounds


def require_at_rest(graph: Graph) -> None:
    """Every table's newest version is the published one, and no write is unfinished."""
    view = Repository.open(parse_location(graph.uri))
    for pin in view.snapshot(MAIN_BRANCH).pins.values():
        assert view.tables.newest_from(pin.ref) == pin.ref
        assert view.tables.open(pin.ref).rows == pin.rows
    assert view.objects.list("__recovery") == []


def table_of(graph: Graph, type_key: str) -> Any:
    view = Repository.open(parse_location(graph.uri))
    return view.tables.open(view.snapshot(MAIN_BRANCH).pin(type_key).ref)


def stored_ids(graph: Graph, type_key: str) -> list[str]:
    return sorted(table_of(graph, type_key).scan(["id"])["id"].to_pylist())


def build_index(graph: Graph, type_key: str, column: str) -> None:
    view = Repository.open(parse_location(graph.uri))
    snapshot = view.snapshot(MAIN_BRANCH)
    pin = snapshot.pin(type_key)
    staged = stage_indexes(view.tables.open(pin.ref), [IndexSpec(column, "BTREE")], {})
    info = WriteInfo("index", makes_commit=False)
    WriteTransaction(view).commit(
        PreparedWrite(new_ulid(), snapshot, info, (PreparedTable(pin, staged),))
    )
