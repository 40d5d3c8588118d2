"""The writer kinds of format upgrades: what the crash harness kills between steps of the format."""

from __future__ import annotations

from omnigraph import Graph
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.migrations.legacy import INERT_SINCE
from tests.support.crash_kinds import Target, WriterKind, writer_kind
from tests.support.crash_writers import ids, insert_neighbourhood, make_graph, neighbourhood
from tests.support.internals import repository_of
from tests.support.old_graphs import aged, without_primary_key

SIDE = "side"
ALL = 1_000  # commits: more than these graphs have


def old_graph(uri: str) -> None:
    """A graph of version 1 with a branch that has commits of its own."""
    with without_primary_key():
        graph = make_graph(uri)
    graph.branches.create(SIDE)
    insert_neighbourhood(graph, 90, SIDE)
    aged(uri, 1)


def format_of(graph: Graph, branch: str) -> int:
    repository = repository_of(graph)
    return repository.manifest(repository.branch(branch)).current().format


@writer_kind
class Upgrade(WriterKind):
    """Every step of the format, on main and on a branch."""

    name = "upgrade"
    opening_writes = True

    def prepare(self, uri: str) -> None:
        old_graph(uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.upgrade(apply=True)
        if number > 0:
            insert_neighbourhood(target.graph, number, SIDE)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """Branches are brought on one after the other; no branch is ever without its commits."""
        assert len(graph.history.commits(branch=SIDE)) >= len(graph.history.commits()) + 1
        there = number == 0 or neighbourhood(graph, number, SIDE)["person"]
        return {"whole": there and format_of(graph, SIDE) == INTERNAL_VERSION}


@writer_kind
class FirstWriteToAnOldBranch(WriterKind):
    """A write meets a branch that has an older format than main."""

    name = "first write to an old branch"

    def prepare(self, uri: str) -> None:
        old_graph(uri)
        Target(
            uri
        ).graph.maintenance.upgrade()  # opening brings main on; looking changes nothing else

    def write(self, target: Target, number: int) -> None:
        with target.graph.write(SIDE, actor="writer") as w:
            w.replace("Person", {"name": f"new{number}"})

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {"node": f"new{number}" in ids(graph, "node:Person", SIDE)}


@writer_kind
class CleanupAfterUpgrade(WriterKind):
    """What older formats left goes away, as a whole or in part: nobody reads it."""

    name = "cleanup after an upgrade"
    copyable = False

    def prepare(self, uri: str) -> None:
        old_graph(uri)
        Target(uri).graph.maintenance.upgrade(apply=True)

    def write(self, target: Target, number: int) -> None:
        target.graph.maintenance.cleanup(keep=ALL, confirm=True)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        left = [i for path in INERT_SINCE for i in repository_of(graph).objects.list(path)]
        return {"reclaimed": not left}
