"""Old graphs that these tests start from."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from tests.graphs import people_graph
from tests.support.internals import repository_of
from tests.support.old_graphs import aged, without_primary_key

from omnigraph import Graph
from omnigraph.catalog.rows import Commit

VERSIONS = (1, 2, 3)
SIDE = "side"
CITIES = "query q() { match { $c: City } return { $c.name } }"

Told = dict[str, list[Commit]]


def people_with_a_side(where: Path | str, version: int) -> Graph:
    """The graph before it is taken back: three commits on main, four on a branch, a tag."""
    with without_primary_key() if version == 1 else nullcontext():
        graph = people_graph(where)
    graph.tags.create("people", graph.history.commits()[1].commit_id)
    graph.branches.create(SIDE)
    with graph.write(SIDE, actor="sam") as w:
        w.insert("City", {"name": "Rome"})
    return graph


def old_graph(
    where: Path | str, version: int, *, legacy: bool = True, restated: bool = False
) -> Told:
    """The same in an older format."""
    people_with_a_side(where, version)
    return aged(str(where), version, legacy=legacy, restated=restated)


def lineage(
    commits: list[Commit],
) -> list[tuple[str, str, str | None, str | None, int, int | None]]:
    """What every format keeps of commits, oldest first."""
    return [
        (c.commit_id, c.branch, c.parent, c.actor, c.created_at_us, c.manifest_version)
        for c in sorted(commits, key=lambda c: c.manifest_version or 0)
    ]


def format_of(graph: Graph, branch: str = "main") -> int:
    repository = repository_of(graph)
    return repository.manifest(repository.branch(branch)).current().format


def cities(graph: Graph, branch: str = "main", at: str | None = None) -> set[str]:
    return {row["c.name"] for row in graph.query(CITIES, branch=None if at else branch, at=at)}
