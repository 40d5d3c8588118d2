"""The writer kinds that change a schema: what the crash harness kills."""

from __future__ import annotations

from omnigraph import Graph
from tests.support.crash_kinds import Target, WriterKind, writer_kind
from tests.support.crash_writers import make_graph, rows
from tests.support.internals import repository_of

RENAMED = (("email: String?", "mail: String?"), ("since: I32?", "year: I32?"))
"""What the writes with the numbers 0 and 1 rename."""
GONE = (
    ("  email: String? @unique\n", "edge LivesIn: Person -> City @card(0..1000)\n"),
    ("  size: I32?\n",),
)
"""What they drop for good."""


def columns(graph: Graph, key: str) -> set[str]:
    """The properties that a type's published table has."""
    pin = graph.snapshot().pin(key)
    return set(repository_of(graph).tables.open(pin.ref).schema.names)


def edited(graph: Graph, *edits: tuple[str, str]) -> str:
    """The schema of main with some words replaced by others."""
    text = graph.schema().source
    for old, new in edits:
        text = text.replace(old, new, 1)
    return text


@writer_kind
class ApplyColumns(WriterKind):
    """Properties of two types come, go and are renamed: two tables move, no row is written."""

    name = "schema apply of columns"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        graph = target.graph
        old, new = RENAMED[number]
        text = edited(
            graph,
            ("age: I32?", f"age: I32?\n  more{number}: String?"),
            ("size: I32?", f"size: I32?\n  more{number}: [I32]?"),
            (old, f'{new} @rename_from("{old.partition(":")[0]}")'),
        )
        graph.apply_schema(text, actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        more, renamed = f"more{number}", RENAMED[number][1].partition(":")[0]
        keys = {"node:Person", "edge:Knows"}
        return {
            "person": more in graph.schema().nodes["Person"].properties,
            "column of person": more in columns(graph, "node:Person"),
            "column of city": more in columns(graph, "node:City"),
            "renamed": any(renamed in columns(graph, key) for key in keys),
        }


@writer_kind
class ApplyValues(WriterKind):
    """Properties with values for what exists: tables are forked, filled and published at once."""

    name = "schema apply with values"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        graph = target.graph
        text = edited(
            graph,
            ("age: I32?", f"age: I32?\n  score{number}: I64"),
            ("size: I32?", f"size: I32?\n  score{number}: F64"),
        )
        values = {f"Person.score{number}": 7, f"City.score{number}": 0.5}
        graph.apply_schema(text, backfill=values, actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        name = f"score{number}"
        return {
            "schema": name in graph.schema().nodes["Person"].properties,
            "person": all(row.get(name) == 7 for row in rows(graph, "node:Person")),
            "city": all(row.get(name) == 0.5 for row in rows(graph, "node:City")),
        }


@writer_kind
class ApplyForGood(WriterKind):
    """A property and an edge type go for good: tables are copied, and old files removed."""

    name = "schema apply for good"
    copyable = False

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        graph = target.graph
        gone = GONE[number]
        text = edited(graph, *((line, "") for line in gone))
        graph.apply_schema(text, allow_data_loss=True, actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        schema = graph.schema()
        if number == 0:
            return {
                "property": "email" not in columns(graph, "node:Person"),
                "type": "edge:LivesIn" not in graph.snapshot().pins,
                "schema": "email" not in schema.nodes["Person"].properties,
            }
        return {"property": "size" not in columns(graph, "node:City")}


@writer_kind
class ApplyTypes(WriterKind):
    """A type and an edge type come, another is renamed: tables are made, none moves."""

    name = "schema apply of types"

    def prepare(self, uri: str) -> None:
        make_graph(uri)

    def write(self, target: Target, number: int) -> None:
        graph = target.graph
        old = "City" if number == 0 else "City0"
        hinted = f'node City{number} @rename_from("{old}") {{\n  name'
        text = edited(
            graph,
            (f"node {old} {{\n  name", hinted),
            (f'node {old} @rename_from("City") {{\n  name', hinted),
            (f"-> {old} ", f"-> City{number} "),
        )
        text += f"node Pet{number} {{ name: String @key }}\n"
        text += f"edge Owns{number}: Person -> Pet{number}\n"
        graph.apply_schema(text, actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        pins = graph.snapshot().pins
        return {
            "node type": f"node:Pet{number}" in pins,
            "edge type": f"edge:Owns{number}" in pins,
            "renamed": any(f"node:City{n}" in pins for n in range(number, 2)),
            "schema": f"Pet{number}" in graph.schema().nodes,
        }


@writer_kind
class MergeSchema(WriterKind):
    """A branch with a schema of its own is merged: the target's tables are copied and changed."""

    name = "merge of a schema"

    def prepare(self, uri: str) -> None:
        graph = make_graph(uri)
        for number in range(2):
            side = f"side{number}"
            graph.branches.create(side)
            text = edited(
                graph,
                ("age: I32?", f"age: I32?\n  score{number}: I64"),
                ("since: I32?", f"since: I32?\n  why{number}: String?"),
            )
            text += f"node Pet{number} {{ name: String @key }}\n"
            graph.apply_schema(text, branch=side, backfill={f"Person.score{number}": 7})
            with graph.write(side) as w:
                w.replace(f"Pet{number}", {"name": "rex"})
                w.replace("City", {"name": f"town{number}"})

    def write(self, target: Target, number: int) -> None:
        target.graph.merge(f"side{number}", actor="writer")

    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        pins, score = graph.snapshot().pins, f"score{number}"
        found = rows(graph, f"node:Pet{number}") if f"node:Pet{number}" in pins else []
        return {
            "schema": score in graph.schema().nodes["Person"].properties,
            "values": all(row.get(score) == 7 for row in rows(graph, "node:Person")),
            "column": f"why{number}" in columns(graph, "edge:Knows"),
            "new type": [row["name"] for row in found] == ["rex"],
            "city": f"town{number}" in {row["id"] for row in rows(graph, "node:City")},
        }
