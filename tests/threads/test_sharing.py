"""One handle, many threads: each of these failed while threads shared dataset objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.errors import BranchExists, BranchInUse, BranchNotFound, OmnigraphError
from omnigraph.maintenance.indexes import StageIndexBuild
from omnigraph.maintenance.optimize import StageCompaction
from omnigraph.model.ids import new_ulid
from omnigraph.storage import named_locks
from omnigraph.storage.lance.tables import StagedWrite
from omnigraph.storage.named_locks import NamedLock, named_lock
from tests.graphs import people_graph, repository

QUERY = "query q() { match { $p: Person } return { $p.name } }"
SET_AGE = 'query q($age: I32) { update Person set { age: $age } where name = "bo" }'
WAIT_S = 120.0


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


def at_once(*calls: Callable[[], object]) -> list[BaseException | None]:
    """Start all calls together; what each of them raised."""
    gate = threading.Barrier(len(calls))
    raised: list[BaseException | None] = [None] * len(calls)

    def run(number: int, call: Callable[[], object]) -> None:
        gate.wait(WAIT_S)
        try:
            call()
        except BaseException as error:
            raised[number] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive(), "a thread hangs"
    return raised


def beside(readers: list[Callable[[], object]], work: Callable[[], object]) -> None:
    """Repeat what readers do for as long as the work takes; nobody may fail."""
    over = threading.Event()

    def working() -> None:
        try:
            work()
        finally:
            over.set()

    def repeated(read: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            while not over.is_set():
                read()

        return run

    assert at_once(working, *map(repeated, readers)) == [None] * (len(readers) + 1)


def inserted(graph: Graph, name: str, branch: str = "main") -> None:
    with graph.write(branch) as w:
        w.insert("Person", {"name": name})


def names(graph: Graph, branch: str = "main") -> list[str]:
    return sorted(row["p.name"] for row in graph.query(QUERY, branch=branch).rows())


class TestOneHandle:
    def test_reads_go_on_while_branches_are_forked(self, graph: Graph) -> None:
        def fork() -> None:
            for number in range(15):
                graph.branches.create(f"b{number}")
                inserted(graph, f"p{number}", f"b{number}")

        reads = [lambda: graph.query(QUERY), lambda: list(graph.export()), graph.history.commits]
        beside(reads, fork)

    def test_reads_go_on_while_indexes_are_built_and_files_compacted(self, graph: Graph) -> None:
        def maintain() -> None:
            for number in range(8):
                inserted(graph, f"p{number}")
                graph.maintenance.optimize()
                graph.maintenance.drop_indexes("node:Person")
                graph.maintenance.build_indexes()

        reads = [
            lambda: graph.query(QUERY),
            lambda: list(graph.export()),
            graph.maintenance.indexes,
        ]
        beside(reads, maintain)

    def test_eight_threads_create_eight_branches(self, graph: Graph) -> None:
        calls = [lambda n=n: graph.branches.create(f"b{n}") for n in range(8)]

        assert at_once(*calls) == [None] * 8
        assert len(graph.branches.list()) == 9

    def test_of_eight_threads_that_create_one_branch_one_succeeds(self, graph: Graph) -> None:
        raised = at_once(*[lambda: graph.branches.create("b")] * 8)

        assert raised.count(None) == 1
        assert {type(error) for error in raised if error is not None} == {BranchExists}

    def test_the_first_writes_of_six_threads_to_a_fresh_branch_all_land(self, graph: Graph) -> None:
        for round in range(5):
            branch = f"b{round}"
            graph.branches.create(branch)
            calls = [lambda n=n, b=branch: inserted(graph, f"p{n}", b) for n in range(6)]

            assert at_once(*calls) == [None] * 6
            assert names(graph, branch) == sorted(["ana", "bo", *(f"p{n}" for n in range(6))])

    def test_inserts_of_eight_threads_all_land_once(self, graph: Graph) -> None:
        def insert(worker: int) -> None:
            for number in range(5):
                inserted(graph, f"p{worker}-{number}")

        assert at_once(*[lambda n=n: insert(n) for n in range(8)]) == [None] * 8
        expected = [f"p{worker}-{number}" for worker in range(8) for number in range(5)]
        assert names(graph) == sorted(["ana", "bo", *expected])
        assert graph.maintenance.check().findings == []

    def test_an_update_is_not_refused_because_of_an_index_that_is_built(self, graph: Graph) -> None:
        """Upkeep adds no commit: what the update was decided on is what it was."""

        def update() -> None:
            for age in range(15):
                graph.mutate(
                    f'query q() {{ update Person set {{ age: {age} }} where name = "bo" }}'
                )

        def maintain() -> None:
            for _ in range(10):
                graph.maintenance.build_indexes()
                graph.maintenance.drop_indexes("node:Person")

        assert at_once(update, maintain) == [None, None]
        assert graph.entity("node:Person", "bo")["age"] == 14

    def test_merges_of_six_threads_into_one_branch_all_land(self, graph: Graph) -> None:
        for number in range(6):
            graph.branches.create(f"b{number}")
            inserted(graph, f"p{number}", f"b{number}")
        calls = [lambda n=n: graph.merge(f"b{n}", delete_branch=True) for n in range(6)]

        assert at_once(*calls) == [None] * 6
        assert names(graph) == sorted(["ana", "bo", *(f"p{n}" for n in range(6))])
        assert graph.branches.list() == ["main"]

    def test_a_branch_that_several_threads_delete_is_deleted_once(self, graph: Graph) -> None:
        graph.branches.create("b")
        inserted(graph, "p", "b")
        raised = at_once(*[lambda: graph.branches.delete("b", force=True)] * 6)

        assert raised.count(None) == 1
        assert {type(error) for error in raised if error is not None} == {BranchNotFound}

    def test_a_fork_and_the_deletion_of_its_source_exclude_each_other(self, graph: Graph) -> None:
        for number in range(10):
            source, child = f"s{number}", f"c{number}"
            graph.branches.create(source)
            forked, deleted = at_once(
                lambda s=source, c=child: graph.branches.create(c, s),
                lambda s=source: graph.branches.delete(s),
            )
            if forked is None:
                assert isinstance(deleted, BranchInUse)
                assert names(graph, child) == ["ana", "bo"]
            else:
                assert isinstance(forked, OmnigraphError)
                assert deleted is None


def test_two_handles_of_one_process_wait_for_each_other(graph: Graph) -> None:
    others = [graph, omnigraph.open(graph.uri), omnigraph.open(graph.uri)]
    calls = [lambda n=n: inserted(others[n % 3], f"p{n}") for n in range(6)]
    calls += [lambda n=n: others[n % 3].branches.create(f"b{n}") for n in range(6)]

    assert at_once(*calls) == [None] * 12
    assert len(names(others[1])) == 8
    assert len(others[2].branches.list()) == 7


def test_a_write_of_another_thread_is_alive_and_is_nobody_elses_to_resolve(graph: Graph) -> None:
    """Both have the same owner: the process."""
    first, second = graph, omnigraph.open(graph.uri)

    def insert(handle: Graph, name: str) -> Callable[[], object]:
        return lambda: [inserted(handle, f"{name}{n}") for n in range(10)]

    def recover() -> None:
        for _ in range(30):
            assert second.maintenance.recover().resolved == []

    assert at_once(insert(first, "a"), insert(second, "b"), recover) == [None] * 3
    assert graph.maintenance.recoveries() == []


@pytest.mark.parametrize("kind", ["compaction", "index"])
def test_files_that_were_written_beside_a_table_are_not_committed_to_a_fork_of_it(
    graph: Graph, kind: str
) -> None:
    """A reset, or a change of the schema, moves a type to a fork of its table."""
    inserted(graph, "carl")
    stage = StageCompaction() if kind == "compaction" else StageIndexBuild(graph.schema())
    view = repository(graph)
    pin = view.snapshot(view.branch("main")).pin("node:Person")
    assert stage("node:Person", view.tables.open(pin.ref), {}) is not None

    fork = view.tables.open(view.tables.fork(pin.ref, new_ulid()))
    again = stage("node:Person", fork, {})
    assert again is not None
    view.tables.commit(again)  # refused when it names a file that is not there


def test_an_index_that_was_built_for_a_column_is_not_used_for_another_of_its_name(
    graph: Graph,
) -> None:
    """A schema change dropped the property and another one brought its name back meanwhile."""
    text = graph.schema().source
    wider = text.replace("age: I32?", "age: I32?  extra: I32? @index")
    graph.apply_schema(wider)
    view = repository(graph)
    stage = StageIndexBuild(graph.schema())

    def staged() -> StagedWrite | None:
        pin = view.snapshot(view.branch("main")).pin("node:Person")
        return stage("node:Person", view.tables.open(pin.ref), {})

    first = staged()
    assert first is not None
    graph.apply_schema(text)
    graph.apply_schema(wider)
    second = staged()
    assert second is not None
    fields = [index.fields for index in second.transaction.operation.new_indices]
    assert fields != [index.fields for index in first.transaction.operation.new_indices]
    graph.maintenance.optimize()
    graph.maintenance.optimize()


class TestSharedState:
    def test_a_handle_that_was_opened_before_its_table_was_forgotten_is_not_shared(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import lance

        view = repository(graph)
        ref = view.snapshot(view.branch("main")).pin("node:Person").ref
        opened = lance.dataset

        def slow(*given: object, **named: object) -> object:
            dataset = opened(*given, **named)
            view.tables.evict(ref.path)  # what a purge does meanwhile
            return dataset

        monkeypatch.setattr(lance, "dataset", slow)
        stale = view.tables.open(ref)
        monkeypatch.setattr(lance, "dataset", opened)

        assert view.tables.open(ref) is not stale

    def test_what_was_made_before_a_cache_was_cleared_is_not_kept(self) -> None:
        cache = MemoryCache(1_000)

        def make() -> memoryview:
            cache.clear()
            return memoryview(b"purged")

        assert cache.get_or_make("key", make) == b"purged"
        assert (len(cache), cache.nbytes) == (0, 0)

    def test_bytes_of_an_entry_that_is_made_twice_count_once(self) -> None:
        cache = MemoryCache(1_000)

        def make() -> memoryview:
            cache.get_or_make("other", lambda: memoryview(b"1234"))
            cache.put("key", memoryview(b"12345"), 5)
            return memoryview(b"12345")

        cache.get_or_make("key", make)
        assert cache.nbytes == 9

    def test_named_locks_are_granted_in_order_and_are_garbage_collected(self) -> None:
        lock, order = named_lock("graph", "main"), list[int]()
        assert named_lock("graph", "main") is lock
        threads = []
        with lock.held(), lock.held():
            lock.wait()
            for number in range(5):
                threads.append(threading.Thread(target=_pass, args=(lock, order, number)))
                threads[-1].start()
                while len(lock._waiting) <= number:
                    pass
        for thread in threads:
            thread.join(WAIT_S)
        assert order == list(range(5))
        del lock, threads, thread
        assert not [name for name in _names() if name == ("graph", "main")]


def _pass(lock: NamedLock, order: list[int], number: int) -> None:
    with lock.held():
        order.append(number)


def _names() -> list[object]:
    return list(named_locks._locks)
