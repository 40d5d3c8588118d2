"""Writer kinds of the write languages: mutations and loads, as the crash harness kills them."""

from __future__ import annotations

import json
from typing import Any

from omnigraph import Graph
from tests.support.crash_kinds import Target, WriterKind, writer_kind
from tests.support.crash_writers import ids, make_graph, neighbourhood, rows

STATEMENTS = """
query arrive($name: String, $email: String, $town: String, $size: I32) {
  insert Person { name: $name, email: $email }
  insert City { name: $town }
  insert Knows { from: $name, to: "ana" }
  insert LivesIn { from: $name, to: $town }
  update City set { size: $size } where name = "Oslo"
}
query leave($name: String) { delete Person where name = $name }
"""


def sizes(graph: Graph) -> dict[str, int | None]:
    return {row["id"]: row["size"] for row in rows(graph, "node:City")}


@writer_kind
class Mutation(WriterKind):
    """Statements that insert into four types and update a node."""

    name = "mutation"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        params = {"name": f"new{number}", "email": f"{number}@x", "town": f"town{number}"}
        target.graph.mutate(
            STATEMENTS, "arrive", params={**params, "size": 100 + number}, actor="writer"
        )

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        updated = {"update": sizes(graph)["Oslo"] == 100 + number}
        return neighbourhood(graph, number, "main") | updated


@writer_kind
class MutationDelete(WriterKind):
    """A statement that deletes a node; its edges go with it."""

    name = "mutation that deletes"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        target.graph.mutate(STATEMENTS, "leave", params={"name": f"doomed{number}"}, actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        gone = f"doomed{number}"
        return {
            "person": gone not in ids(graph, "node:Person"),
            "knows": not any(gone in (row["src"], row["dst"]) for row in rows(graph, "edge:Knows")),
            "lives in": not any(row["src"] == gone for row in rows(graph, "edge:LivesIn")),
        }


def arrival(number: int) -> list[dict[str, Any]]:
    """Records of a person, a city and two edges."""
    name, town = f"new{number}", f"town{number}"
    return [
        {"type": "Person", "data": {"name": name, "email": f"{number}@x"}},
        {"type": "City", "data": {"name": town}},
        {"edge": "Knows", "from": name, "to": "ana"},
        {"edge": "LivesIn", "from": name, "to": town},
    ]


def lines(records: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


@writer_kind
class LoadAppend(WriterKind):
    """A load of new nodes and edges of four types."""

    name = "load append"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        # The key makes it repeatable by one who does not know that recovery finished it.
        target.graph.load(
            lines(arrival(number)), mode="append", actor="writer", idempotency_key=f"load {number}"
        )

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        return neighbourhood(graph, number, "main")


@writer_kind
class LoadMerge(WriterKind):
    """A load that brings new nodes and edges, and new values for a stored node."""

    name = "load merge"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        stored = {"name": "Oslo", "size": 100 + number}
        records = [*arrival(number), {"type": "City", "data": stored}]
        target.graph.load(lines(records), mode="merge", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        merged = {"merged": sizes(graph)["Oslo"] == 100 + number}
        return neighbourhood(graph, number, "main") | merged
