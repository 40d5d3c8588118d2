"""The writer kinds of the storage core: what the crash harness kills."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pyarrow as pa

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.assign import AssignedProperties, PropertyAssignment
from omnigraph.bulk.load.input_parts import InputPart
from omnigraph.bulk.load.partitions import to_ipc
from omnigraph.ingest.load import LoadMode
from omnigraph.model.requests import CommitOptions
from omnigraph.storage.lance.staging.compaction_tiers import SMALL_FRAGMENTS_MAX
from tests.support.crash_kinds import Target, WriterKind, writer_kind
from tests.support.inline_tasks import InlineTasks, bulk_graph
from tests.support.internals import backend_of, repository_of

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  email: String? @unique
  @range(age, 0..200)
}
node City {
  name: String @key
  size: I32?
}
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City @card(0..1000)
"""
DOOMED = 3  # nodes a test may delete, each with edges in both directions


def rows(graph: Graph, key: str, branch: str = "main") -> list[dict[str, Any]]:
    """All rows of a type, read at its published version."""
    pin = graph.snapshot(branch).pin(key)
    return list(repository_of(graph).tables.open(pin.ref).scan().to_pylist())


def ids(graph: Graph, key: str, branch: str = "main") -> set[str]:
    return {row["id"] for row in rows(graph, key, branch)}


def make_graph(uri: str, schema: str = SCHEMA) -> Graph:
    """A few people in two cities; some of them are there to be deleted."""
    graph = omnigraph.init(uri, schema, actor="preparer")
    with graph.write(message="people", actor="preparer") as w:
        for name in ("ana", "bo", *(f"doomed{n}" for n in range(DOOMED))):
            w.insert("Person", {"name": name, "age": 1})
        w.insert("City", {"name": "Oslo", "size": 1})
    with graph.write(message="ties", actor="preparer") as w:
        w.insert_edge("Knows", "ana", "bo", {"since": 2020})
        w.insert_edge("LivesIn", "ana", "Oslo")
        for n in range(DOOMED):
            w.insert_edge("Knows", f"doomed{n}", "ana")
            w.insert_edge("Knows", "bo", f"doomed{n}")
            w.insert_edge("LivesIn", f"doomed{n}", "Oslo")
    return graph


@writer_kind
class Insert(WriterKind):
    """One new node: one table moves."""

    name = "insert"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        with target.graph.write(actor="writer") as w:
            w.replace("Person", {"name": f"new{number}"})

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {"node": f"new{number}" in ids(graph, "node:Person")}


@writer_kind
class InsertWithoutKey(WriterKind):
    """Nodes of two types, one of them without a key: a repeated write would store it twice."""

    name = "insert without a key"

    def prepare(self, uri: str) -> None:
        make_graph(uri, SCHEMA + "node Note { text: String }\n")

    def write(self, target: Target, number: int) -> None:
        with target.graph.write(actor="writer") as w:
            w.insert("Note", {"text": f"note{number}"})
            w.insert("Person", {"name": f"new{number}"})

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        notes = [row["text"] for row in rows(graph, "node:Note")]
        return {
            "note": notes.count(f"note{number}") == 1,
            "person": f"new{number}" in ids(graph, "node:Person"),
        }


def insert_neighbourhood(graph: Graph, number: int, branch: str) -> None:
    with graph.write(branch, actor="writer") as w:
        person = w.replace("Person", {"name": f"new{number}"})
        city = w.replace("City", {"name": f"town{number}"})
        w.insert_edge("Knows", person, "ana")
        w.insert_edge("LivesIn", person, city)


def neighbourhood(graph: Graph, number: int, branch: str) -> dict[str, bool]:
    person, town = f"new{number}", f"town{number}"
    return {
        "person": person in ids(graph, "node:Person", branch),
        "city": town in ids(graph, "node:City", branch),
        "knows": any(row["src"] == person for row in rows(graph, "edge:Knows", branch)),
        "lives in": any(row["dst"] == town for row in rows(graph, "edge:LivesIn", branch)),
    }


@writer_kind
class NodesAndEdges(WriterKind):
    """New nodes of two types with edges of two types: four tables move."""

    name = "nodes and edges"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        insert_neighbourhood(target.graph, number, "main")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return neighbourhood(graph, number, "main")


def update_two_types(graph: Graph, number: int, branch: str) -> None:
    with graph.write(branch, actor="writer") as w:
        w.update("Person", "ana", {"age": 100 + number})
        w.update("City", "Oslo", {"size": 100 + number})


def updated(graph: Graph, number: int, branch: str) -> dict[str, bool]:
    ages = {row["id"]: row["age"] for row in rows(graph, "node:Person", branch)}
    sizes = {row["id"]: row["size"] for row in rows(graph, "node:City", branch)}
    return {
        "person": ages["ana"] == 100 + number,
        "city": sizes["Oslo"] == 100 + number,
    }


@writer_kind
class Update(WriterKind):
    """New values for nodes of two types."""

    name = "update"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        update_two_types(target.graph, number, "main")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return updated(graph, number, "main")


@writer_kind
class DeleteCascade(WriterKind):
    """A node goes, and its edges of two types with it."""

    name = "delete with cascade"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        with target.graph.write(actor="writer") as w:
            w.delete("Person", f"doomed{number}")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        gone = f"doomed{number}"
        knows = [{row["src"], row["dst"]} for row in rows(graph, "edge:Knows")]
        return {
            "person": gone not in ids(graph, "node:Person"),
            "knows": not any(gone in ends for ends in knows),
            "lives in": not any(row["src"] == gone for row in rows(graph, "edge:LivesIn")),
        }


@writer_kind
class FirstWriteOnBranch(WriterKind):
    """The first write on a branch: every table it moves is forked for it."""

    name = "first write on a branch"

    def prepare(self, uri: str) -> None:
        make_graph(uri).branches.create("side")

    def write(self, target: Target, number: int) -> None:
        insert_neighbourhood(target.graph, number, "side")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return neighbourhood(graph, number, "side")


@writer_kind
class LaterWriteOnBranch(WriterKind):
    """A write to tables that the branch has of its own."""

    name = "later write on a branch"

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        graph.branches.create("side")
        update_two_types(graph, 99, "side")

    def write(self, target: Target, number: int) -> None:
        update_two_types(target.graph, number, "side")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return updated(graph, number, "side")


@writer_kind
class Upkeep(WriterKind):
    """An insert that leaves one fragment too many: upkeep compacts the table after it."""

    name = "insert with upkeep"

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        for n in range(SMALL_FRAGMENTS_MAX - 1):
            with graph.write() as w:
                w.replace("Person", {"name": f"small{n}"})

    def write(self, target: Target, number: int) -> None:
        with target.graph.write(actor="writer") as w:
            w.replace("Person", {"name": f"new{number}"})

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {"node": f"new{number}" in ids(graph, "node:Person")}


@writer_kind
class LoadOverwrite(WriterKind):
    """A load that replaces everything of a node type and of an edge type."""

    name = "load overwrite"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        records = [
            {"type": "City", "data": {"name": "Oslo", "size": 100 + number}},
            {"edge": "LivesIn", "from": "bo", "to": "Oslo"},
        ]
        target.graph.load(records, mode="overwrite", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {
            "cities": [row["size"] for row in rows(graph, "node:City")] == [100 + number],
            "lives in": [row["src"] for row in rows(graph, "edge:LivesIn")] == ["bo"],
        }


class BulkLoad(WriterKind):
    """A load the bulk way: files staged by tasks, then one commit of four tables.

    Its tasks run in the process itself, so that a kill hits the driver and a task alike.
    """

    mode: ClassVar[LoadMode]

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        person, town = f"new{number}", f"town{number}"
        records: list[dict[str, Any]] = [
            {"type": "Person", "data": {"name": person}},
            {"type": "City", "data": {"name": town}},
            {"edge": "Knows", "from": person, "to": "ana"},
            {"edge": "LivesIn", "from": person, "to": town},
        ]
        if self.mode == "merge":
            records += [
                {"type": "Person", "data": {"name": "ana", "age": 100 + number}},
                {"type": "City", "data": {"name": "Oslo", "size": 100 + number}},
            ]
        data = "\n".join(map(json.dumps, records)).encode()
        # What was left unfinished may be finished by the very write that repeats it.
        graph, key = bulk_graph(target.graph), f"write {number}"
        graph.load(data, mode=self.mode, actor="writer", idempotency_key=key)

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return neighbourhood(graph, number, "main")


@writer_kind
class BulkAppend(BulkLoad):
    name = "bulk load append"
    mode = "append"


@writer_kind
class BulkMerge(BulkLoad):
    name = "bulk load merge"
    mode = "merge"

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {**super().parts(graph, number), **updated(graph, number, "main")}


@writer_kind
class BulkAssignment(WriterKind):
    """Values computed in bulk, set as a property of nodes that exist."""

    name = "bulk assignment"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        data = to_ipc(pa.table({"id": ["ana", "bo"], "age": [100 + number] * 2}))
        part = InputPart(0, "<ages>", None, data, "arrow", "node:Person", len(data))
        backend_of(target.graph).bulk.assign(
            InlineTasks(),
            PropertyAssignment({"node:Person": AssignedProperties(("age",))}, (part,)),
            "main",
            "analyze",
            {},
            CommitOptions(actor="writer", idempotency_key=f"write {number}"),
        )

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        ages = {row["id"]: row["age"] for row in rows(graph, "node:Person")}
        return {name: ages[name] == 100 + number for name in ("ana", "bo")}


@writer_kind
class CreateBranch(WriterKind):
    """A new branch."""

    name = "branch create"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.branches.create(f"branch{number}")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return {"branch": f"branch{number}" in graph.branches.list()}


@writer_kind
class Init(WriterKind):
    """A new graph. The write after it is an ordinary one."""

    name = "init"

    def prepare(self, uri: str) -> None:
        """There is nothing before init."""

    def write(self, target: Target, number: int) -> None:
        if number == 0:
            omnigraph.init(target.uri, SCHEMA, actor="writer")
        else:
            with target.graph.write(actor="writer") as w:
                w.replace("Person", {"name": f"new{number}"})

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        if number == 0:
            return {"graph": True}
        return {"node": f"new{number}" in ids(graph, "node:Person")}
