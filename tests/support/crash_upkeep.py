"""The writer kinds of upkeep: what the crash harness kills while a graph is being maintained."""

from __future__ import annotations

import shutil

import omnigraph
from omnigraph import Graph
from omnigraph.maintenance.fsck import Damage
from omnigraph.settings import Settings
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.staging.rows import stage_delete
from tests.support.crash_kinds import Target, WriterKind, writer_kind
from tests.support.crash_writers import ids, insert_neighbourhood, make_graph, rows
from tests.support.internals import repository_of

DEAD = b'{"owner": {"host": "gone", "pid": 1, "started": "never"}}'
SMALL_WRITES = 3  # enough that every type has files to be joined


def untidy_graph(uri: str, branch: str = "main") -> Graph:
    """A graph whose types are each spread over several files, on a branch of its own if asked."""
    graph = make_graph(uri)
    if branch != "main":
        graph.maintenance.build_indexes()
        graph.branches.create(branch)
    for number in range(SMALL_WRITES):
        insert_neighbourhood(graph, 90 + number, branch)
    return graph


def files_per_type(graph: Graph, branch: str) -> dict[str, int]:
    tables = repository_of(graph).tables
    return {
        key: len(tables.open(pin.ref).fragments) for key, pin in graph.snapshot(branch).pins.items()
    }


class Optimizing(WriterKind):
    """Files are joined and indexes brought up to date: four tables move, twice."""

    branch = "main"

    def prepare(self, uri: str) -> None:
        untidy_graph(uri, self.branch)

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.optimize(self.branch)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {key: count == 1 for key, count in files_per_type(graph, self.branch).items()}


@writer_kind
class Optimize(Optimizing):
    name = "optimize"


@writer_kind
class OptimizeBranch(Optimizing):
    """The same with indexes that the branch has inherited.

    Lance joins what the old indexes cover apart from what they do not: the files of one type become
    two, and one in the round that follows.
    """

    name = "optimize a branch"
    branch = "side"

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {key: count <= 2 for key, count in files_per_type(graph, self.branch).items()}


@writer_kind
class BuildIndexes(WriterKind):
    """Every index of four types, as one publish."""

    name = "index build"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.build_indexes()

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        found = graph.maintenance.indexes()
        return {f"{i.type_key} {i.property} {i.kind}": i.state == "current" for i in found}


@writer_kind
class DropIndexes(WriterKind):
    """The indexes of one type go."""

    name = "index drop"

    def prepare(self, uri: str) -> None:
        make_graph(uri).maintenance.build_indexes()

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.drop_indexes("node:Person" if number == 0 else "node:City")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        dropped = "node:Person" if number == 0 else "node:City"
        found = [i for i in graph.maintenance.indexes() if i.type_key == dropped]
        return {f"{i.property} {i.kind}": i.parts == 0 for i in found}


@writer_kind
class Cleanup(WriterKind):
    """Old versions and files of every table go, and what dead loads left."""

    name = "cleanup"
    copyable = False

    def prepare(self, uri: str) -> None:
        graph = untidy_graph(uri, "side")
        for number in range(SMALL_WRITES):
            insert_neighbourhood(graph, 80 + number, "main")
        graph.maintenance.optimize()
        repository_of(graph).objects.put("_staging/01M7H4DSR3ACYWZH05C863YXQ3/intent.json", DEAD)

    def write(self, target: Target, number: int) -> None:
        settings = Settings.from_environment({"OMNIGRAPH_READER_GRACE_SECONDS": "0"})
        graph = omnigraph.open(target.uri, settings=settings)
        graph.maintenance.cleanup(keep=1, confirm=True)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """What a branch says never depends on a cleanup; old states go one by one."""
        for branch in ("main", "side"):
            for pin in graph.snapshot(branch).pins.values():
                assert repository_of(graph).tables.open(pin.ref).scan().num_rows == pin.rows
        return {"horizon": bool(repository_of(graph).main.current().horizon)}


@writer_kind
class PurgeEntity(WriterKind):
    """An edge goes from two branches and from all history."""

    name = "purge"
    copyable = False

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        graph.branches.create("side")
        insert_neighbourhood(graph, 90, "side")
        graph.branches.create("moves")
        for number in (1, 0):  # so that a merge lists them one by one
            (id,) = _homes(graph, number)
            there = {"type": "City", "data": {"name": f"away{number}"}}
            move = {"edge": "LivesIn", "from": f"doomed{number}", "to": f"away{number}"}
            records = [there, {**move, "data": {"id": id}}]
            graph.load(records, mode="merge", branch="moves")
        graph.merge("moves", delete_branch=True)

    def write(self, target: Target, number: int) -> None:
        graph = target.graph
        (id,) = _homes(graph, number) or _homes(graph, number, "side") or ("gone",)
        graph.maintenance.purge("edge", "LivesIn", id, confirm=True)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """It goes from one branch after the other."""
        return {"main": not _homes(graph, number)}


def _homes(graph: Graph, number: int, branch: str = "main") -> list[str]:
    found = rows(graph, "edge:LivesIn", branch)
    return [row["id"] for row in found if row["src"] == f"doomed{number}"]


@writer_kind
class Repair(WriterKind):
    """Two types were changed from outside: an index is taken over, lost rows are restored."""

    name = "repair"
    starts_damaged = True

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        tables, pins = repository_of(graph).tables, graph.snapshot().pins
        people = tables.open(pins["node:Person"].ref)
        tables.commit(stage_delete(people, people.scan(["id"])["id"], {}))
        cities = tables.open(pins["node:City"].ref)
        index = stage_indexes(cities, [IndexSpec("name", "BTREE")], {})
        assert index is not None, "there is none yet"
        tables.commit(index)

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.repair(confirm=True, restore=True)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """One type is healed after the other; rows are never missing."""
        assert len(ids(graph, "node:Person")) == graph.snapshot().pin("node:Person").rows
        return {
            "healed": all(one.classification == "no_drift" for one in graph.maintenance.repair())
        }


@writer_kind
class Backup(WriterKind):
    """A backup beside the graph is brought up to date."""

    name = "backup"
    copyable = False  # the backup is beside it

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        graph.maintenance.backup(f"{uri}.backup")
        graph.branches.create("side")
        insert_neighbourhood(graph, 90, "side")
        insert_neighbourhood(graph, 91, "main")

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.backup(f"{target.uri}.backup")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """What the backup says is whole at any time: an older state, or the newest.

        Versions that it does not say yet may be there already.
        """
        copy = omnigraph.open(f"{graph.uri}.backup", read_only=True)
        assert {str(found.damage) for found in copy.maintenance.check().findings} <= {Damage.DRIFT}
        return {"head": copy.history.commits(limit=1) == graph.history.commits(limit=1)}


@writer_kind
class Relocate(WriterKind):
    """The branch of a graph whose directory was moved is made to refer to its own files."""

    name = "relocate"
    copyable = False  # a copy would be relocated by the harness
    starts_damaged = True
    deletes_branches = True  # before it is relocated, only main can be read

    def prepare(self, uri: str) -> None:
        graph = make_graph(f"{uri}.before")
        graph.branches.create("side")
        insert_neighbourhood(graph, 90, "side")
        shutil.move(f"{uri}.before", uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.relocate()
        if number:
            insert_neighbourhood(target.graph, number, "side")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """Versions are relocated one by one; each refers to one place or to the other."""
        findings = omnigraph.open(graph.uri, read_only=True).maintenance.check().findings
        assert {str(found.damage) for found in findings} <= {Damage.READS_ELSEWHERE}
        return {"relocated": not findings}
