"""Optimize: fewer files, current indexes, the same answers, no commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.graphs import people_graph, rows
from tests.support.internals import repository_of
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ReadOnly
from omnigraph.maintenance import publish
from omnigraph.maintenance.optimize import Optimized, StageCompaction
from omnigraph.storage.lance.staging import compaction
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite

SCHEMA = """
node P { k: String @key  n: I32? @index  note: String? @index  vec: Vector(2)? @index }
edge E: P -> P { w: I32? @index  label: String?  @index(w, label) }
"""
QUERY = "query q() { match { $p: P  $p e $o } return { $p.k, $o.k, $p.n } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    for number in range(6):
        write(graph, number)
    return graph


def write(graph: Graph, number: int, branch: str = "main") -> None:
    with graph.write(branch) as w:
        w.insert("P", {"k": f"k{number}", "n": number, "note": f"note {number}"})
        w.insert_edge("E", f"k{number}", "k0", {"w": number})


def table(graph: Graph, key: str, branch: str = "main") -> PinnedTable:
    return repository_of(graph).tables.open(graph.snapshot(branch).pin(key).ref)


def by_key(done: list[Optimized]) -> Mapping[str, Optimized]:
    return {one.type_key: one for one in done}


def stamps(graph: Graph, key: str, branch: str = "main") -> list[tuple[object, ...]]:
    columns = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    found = table(graph, key, branch).scan(columns, with_row_id=True).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_X_20_small_files_become_one_without_a_commit(graph: Graph) -> None:
    graph.mutate('query q() { update P set { n: 70 } where k = "k3" }')  # leaves no old file
    answer, commits = graph.query(QUERY).rows(), graph.history.commits()
    before, identities = rows(graph, "edge:E"), stamps(graph, "node:P")
    done = by_key(graph.maintenance.optimize())
    assert (done["node:P"].fragments_removed, done["node:P"].fragments_added) == (6, 1)
    assert (done["edge:E"].fragments_removed, done["edge:E"].fragments_added) == (6, 1)
    assert len(table(graph, "node:P").fragments) == 1
    assert (graph.query(QUERY).rows(), graph.history.commits()) == (answer, commits)
    assert rows(graph, "edge:E") == before
    assert stamps(graph, "node:P") == identities
    assert not broken_promises(graph.uri)


def test_X_20_a_second_run_publishes_nothing(graph: Graph) -> None:
    graph.maintenance.optimize()
    version = graph.snapshot().manifest_version
    assert not any(one.committed for one in graph.maintenance.optimize())
    assert graph.snapshot().manifest_version == version


def test_J05_X_21_a_vector_index_without_vectors_is_pending(graph: Graph) -> None:
    done = by_key(graph.maintenance.optimize())
    assert [name for name, _ in done["node:P"].pending_indexes] == ["vec"]
    assert "__manifest" in done
    states = {(i.type_key, i.property, i.kind): i.state for i in graph.maintenance.indexes()}
    assert states.pop(("node:P", "vec", "IVF_FLAT")) == "pending"
    assert set(states.values()) == {"current"}
    assert ("edge:E", "label", "BTREE") in states


def test_deleted_rows_leave_the_files(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.maintenance.optimize()
    graph.mutate('query q() { delete P where k = "k3" }')
    assert table(graph, "node:P").fragments.popitem()[1].num_deletions == 1
    done = by_key(graph.maintenance.optimize())
    assert done["node:P"].fragments_removed == 1
    (fragment,) = table(graph, "node:P").fragments.values()
    assert (fragment.num_deletions, fragment.physical_rows) == (0, 5)


def test_a_branch_is_optimized_with_indexes_it_inherited(graph: Graph) -> None:
    """Lance's own compaction leaves a branch with indexes that cannot be read (facts 7.4)."""
    graph.maintenance.build_indexes()
    graph.branches.create("dev")
    for number in range(10, 14):
        write(graph, number, "dev")
    before, main = rows(graph, "node:P", "dev"), graph.snapshot().pins
    done = by_key(graph.maintenance.optimize("dev"))
    assert done["node:P"].committed
    assert done["edge:E"].committed
    assert rows(graph, "node:P", "dev") == before
    assert graph.snapshot().pins == main
    found = table(graph, "node:P", "dev")
    for key in ("k0", "k12"):
        assert found.scan(["id"], f"id = '{key}'")["id"].to_pylist() == [key]
        assert found.scan(["id"], f"note = 'note {key[1:]}'")["id"].to_pylist() == [key]
    assert {i.state for i in graph.maintenance.indexes("dev")} == {"current", "pending"}
    assert not any(one.committed for one in graph.maintenance.optimize("dev"))
    assert not broken_promises(graph.uri)


def test_a_branch_leaves_what_it_shares_to_its_parent(graph: Graph) -> None:
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("P", {"k": "new"})
    assert {one.type_key for one in graph.maintenance.optimize("dev")} == {"node:P", "__manifest"}


def test_a_faster_writer_costs_the_step_and_not_the_work(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows are written between staging and publishing: the files are made once."""
    executed = _count_rewrites(monkeypatch)
    interrupted: list[int] = []
    stage = StageCompaction.__call__

    def interrupting(
        self: StageCompaction, key: str, table: PinnedTable, properties: Mapping[str, str]
    ) -> StagedWrite | None:
        staged = stage(self, key, table, properties)
        if key == "node:P" and len(interrupted) < 2:
            interrupted.append(1)
            write(omnigraph.open(graph.uri), 50 + len(interrupted))
        return staged

    monkeypatch.setattr(StageCompaction, "__call__", interrupting)
    done = by_key(graph.maintenance.optimize())
    assert len(interrupted) == 2
    assert done["node:P"].fragments_removed == 6 + 3  # the late ones in the second round
    assert executed.count("node:P") == 2
    assert {"k51", "k52"} <= rows(graph, "node:P").keys()
    assert not broken_promises(graph.uri)


def _count_rewrites(monkeypatch: pytest.MonkeyPatch) -> list[str]:

    executed: list[str] = []
    rewrite = compaction.rewrite_pieces

    def counting(table: PinnedTable) -> object:
        found = list(rewrite(table))
        if found:
            executed.append("node:P" if table.ref.path.startswith("nodes") else "edge:E")
        return found

    monkeypatch.setattr("omnigraph.local.maintenance.rewriter", lambda repository, engine: counting)
    return executed


def test_a_type_that_stays_busy_does_not_hold_up_the_others(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "RETRY", replace(publish.RETRY, attempts_max=4))
    monkeypatch.setattr(publish, "ATTEMPTS_TOGETHER", 2)
    number = iter(range(100, 200))
    stage = StageCompaction.__call__

    def always_late(
        self: StageCompaction, key: str, table: PinnedTable, properties: Mapping[str, str]
    ) -> StagedWrite | None:
        staged = stage(self, key, table, properties)
        if key == "node:P":
            with omnigraph.open(graph.uri).write() as w:
                w.insert("P", {"k": f"k{next(number)}"})
        return staged

    monkeypatch.setattr(StageCompaction, "__call__", always_late)
    done = by_key(graph.maintenance.optimize())
    assert done["node:P"].skipped == "busy"
    assert done["edge:E"].fragments_removed == 6
    assert done["edge:E"].skipped is None


def test_X_21_a_type_that_was_changed_from_outside_is_skipped_and_named(graph: Graph) -> None:
    import lance

    pin = graph.snapshot().pin("node:P")
    lance.dataset(f"{graph.uri}/{pin.ref.path}").delete("id = 'k1'")
    done = by_key(graph.maintenance.optimize())
    assert done["node:P"].skipped == "drift_needs_repair"
    assert done["node:P"].head_version == pin.ref.version + 1
    assert done["edge:E"].committed
    assert "k1" in rows(graph, "node:P")


def test_a_read_only_handle_optimizes_nothing(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    with pytest.raises(ReadOnly):
        omnigraph.open(graph.uri, read_only=True).maintenance.optimize()
