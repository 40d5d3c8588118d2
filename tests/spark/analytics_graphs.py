"""Graphs for the tests of algorithms, in Omnigraph and in NetworkX."""

from __future__ import annotations

import random
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import networkx as nx

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Person {
  name: String @key
  note: String?
  rank: F64?
  group: I64?
  far: I64?
  photo: Blob?
}
node City { name: String @key  rank: F64? }
edge Knows: Person -> Person { weight: F64? }
edge Lives: Person -> City { weight: F64? }
"""

Node = tuple[str, str]


def random_graph(seed: int) -> nx.MultiDiGraph:
    """Loops, repeated edges, two types that share ids, and nodes without edges."""
    chance = random.Random(seed)
    graph = nx.MultiDiGraph()
    people = [("Person", f"n{n}") for n in range(chance.randint(1, 60))]
    cities = [("City", f"n{n}") for n in range(chance.randint(1, 8))]
    graph.add_nodes_from(people + cities)
    for _ in range(chance.randint(0, 150)):
        source, target = chance.choice(people), chance.choice(chance.choice((people, cities)))
        graph.add_edge(source, target, weight=chance.randint(0, 8) / 4)
    return graph


def from_public(public: Any) -> nx.MultiDiGraph:
    """A graph that comes with NetworkX, of people; an undirected edge goes one way here."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(("Person", str(node)) for node in public)
    for source, target, data in public.edges(data=True):
        weight = float(data.get("weight", 1))
        graph.add_edge(("Person", str(source)), ("Person", str(target)), weight=weight)
    return graph


def records(graph: nx.MultiDiGraph) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"type": kind, "data": {"name": name}} for kind, name in graph.nodes
    ]
    for (_, source), (kind, target), data in graph.edges(data=True):
        edge = "Knows" if kind == "Person" else "Lives"
        weight = {"weight": data["weight"]}
        found.append({"edge": edge, "from": source, "to": target, "data": weight})
    return found


def stored(folder: Path, graph: nx.MultiDiGraph) -> Graph:
    made = omnigraph.init(folder, SCHEMA)
    made.load(records(graph), mode="append", engine="local")
    return made


def values(found: Any, column: str | None = None) -> dict[Hashable, Any]:
    """The values of a finished analysis, by node."""
    name = column or found.columns[0]
    return {(row["type"], row["id"]): row[name] for row in found.table().to_pylist()}


def grouped(labels: dict[Hashable, Any]) -> list[list[Hashable]]:
    """Nodes with equal labels, as sorted groups."""
    groups: dict[Any, list[Hashable]] = {}
    for node, label in labels.items():
        groups.setdefault(label, []).append(node)
    return sorted(sorted(group) for group in groups.values())
