"""The writer kinds that work on branches: what the crash harness kills."""

from __future__ import annotations

from omnigraph import Graph
from tests.support.crash_kinds import Target, WriterKind, writer_kind
from tests.support.crash_writers import (
    ids,
    insert_neighbourhood,
    make_graph,
    neighbourhood,
    rows,
    update_two_types,
)
from tests.support.inline_tasks import bulk_graph

WRITES = 2  # the harness writes with the numbers 0 and 1


def graph_with_sides(uri: str) -> Graph:
    """For every number a branch with a neighbourhood of its own."""
    graph = make_graph(uri)
    for number in range(WRITES):
        graph.branches.create(f"side{number}")
        insert_neighbourhood(graph, number, f"side{number}")
    return graph


@writer_kind
class DeleteBranch(WriterKind):
    """A branch goes, with the tables it wrote to."""

    name = "branch delete"
    copyable = False
    deletes_branches = True

    def prepare(self, uri: str) -> None:
        graph_with_sides(uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.branches.delete(f"side{number}", force=True)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {"branch": f"side{number}" not in graph.branches.list()}


@writer_kind
class MergeBranch(WriterKind):
    """A branch with nodes and edges of four types is merged into a main that moved, too."""

    name = "merge"

    def prepare(self, uri: str) -> None:
        graph = graph_with_sides(uri)
        update_two_types(graph, 99, "main")

    def write(self, target: Target, number: int) -> None:
        target.graph.merge(f"side{number}", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        head = graph.snapshot(f"side{number}").commit_id
        merged = any(commit.merged_parent == head for commit in graph.history.commits())
        return {**neighbourhood(graph, number, "main"), "commit": merged}


@writer_kind
class MergeHistory(MergeBranch):
    """A branch of several commits is merged: who did what there is stored before the publish."""

    name = "merge of several commits"

    def prepare(self, uri: str) -> None:
        graph = graph_with_sides(uri)
        for number in range(WRITES):
            with graph.write(f"side{number}", actor="second") as w:
                w.update("Person", f"new{number}", {"age": 1})
                w.insert("Person", {"name": f"extra{number}"})

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        found = super().parts(graph, number)
        if found["commit"]:
            setters = {b.property: b.commit for b in graph.history.blame("Person", f"new{number}")}
            actors = {name: commit and commit.actor for name, commit in setters.items()}
            found["authors"] = (actors["name"], actors["age"]) == ("writer", "second")
        return found


@writer_kind
class BulkMergeBranch(MergeBranch):
    """The same the bulk way: rows are made and written by tasks, in the process itself."""

    name = "bulk merge"

    def write(self, target: Target, number: int) -> None:
        graph, key = bulk_graph(target.graph), f"write {number}"
        graph.merge(f"side{number}", actor="writer", idempotency_key=key)


@writer_kind
class MergeIntoBranch(WriterKind):
    """The first write on a branch is a merge: every table it moves is forked for it."""

    name = "merge into a fresh branch"

    def prepare(self, uri: str) -> None:
        graph_with_sides(uri).branches.create("fresh")

    def write(self, target: Target, number: int) -> None:
        target.graph.merge(f"side{number}", "fresh", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return neighbourhood(graph, number, "fresh")


@writer_kind
class Revert(WriterKind):
    """A commit that wrote to four types is undone."""

    name = "revert"

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        for number in range(WRITES):
            insert_neighbourhood(graph, number, "main")

    def write(self, target: Target, number: int) -> None:
        made = [c.commit_id for c in reversed(target.graph.history.commits()) if c.kind == "write"]
        target.graph.revert(made[2 + number], actor="writer")  # after those of make_graph

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {part: not there for part, there in neighbourhood(graph, number, "main").items()}


@writer_kind
class Reset(WriterKind):
    """A branch is taken back to where it was forked."""

    name = "reset"

    def prepare(self, uri: str) -> None:
        graph_with_sides(uri)

    def write(self, target: Target, number: int) -> None:
        commits = target.graph.history.commits(f"side{number}", limit=2)
        target.graph.reset(commits[-1].commit_id, f"side{number}", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        found = neighbourhood(graph, number, f"side{number}")
        return {part: not there for part, there in found.items()}


@writer_kind
class Restore(WriterKind):
    """Entities that were deleted with their edges come back."""

    name = "restore"

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        graph.tags.create("before")
        with graph.write() as w:
            for number in range(WRITES):
                w.delete("Person", f"doomed{number}")

    def write(self, target: Target, number: int) -> None:
        person = f"doomed{number}"
        before = target.graph.diff("main", "before", kinds=["edge"], ops=["insert"])
        edges: dict[str, list[str]] = {}
        for change in before:
            if person in (change.endpoints or {}).values():
                edges.setdefault(f"edge:{change.type_name}", []).append(change.id)
        target.graph.restore("before", {"node:Person": [person], **edges}, actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        person = f"doomed{number}"
        knows = [{row["src"], row["dst"]} for row in rows(graph, "edge:Knows")]
        return {
            "person": person in ids(graph, "node:Person"),
            "knows": any(person in ends for ends in knows),
            "lives in": any(row["src"] == person for row in rows(graph, "edge:LivesIn")),
        }


@writer_kind
class TagCommit(WriterKind):
    """A name for the newest commit."""

    name = "tag"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.tags.create(f"tag{number}", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {"tag": f"tag{number}" in {tag.name for tag in graph.tags.list()}}
