"""Cluster folders that the tests start from, in the layout of the original."""

from __future__ import annotations

from pathlib import Path

PEOPLE = "node Person { name: String @key  age: I32? }\n"
PLACES = "node City { name: String @key }\n"
ADULTS = "query adults($least: I32) { match { $p: Person  $p.age >= $least } return { $p.name } }\n"
TEAM = """
version: 1
groups: {readers: [ana]}
protected_branches: [main]
rules:
  - id: readers-read
    allow: {actors: {group: readers}, actions: [read, export], branch_scope: any}
"""
SERVER = """
version: 1
groups: {readers: [ana]}
rules: [{id: list, allow: {actors: {group: readers}, actions: [graph_list]}}]
"""
CONFIG = """
version: 1
metadata: {name: brain}
state: {backend: cluster, lock: true}
graphs:
  people: {schema: people.pg, queries: queries/}
  places: {schema: places.pg}
policies:
  team: {file: policies/team.policy.yaml, applies_to: [people, places]}
  server: {file: policies/server.policy.yaml, applies_to: [cluster]}
"""


def cluster_folder(where: Path) -> Path:
    """Two graphs, one stored query, two policies."""
    for name, text in {
        "cluster.yaml": CONFIG,
        "people.pg": PEOPLE,
        "places.pg": PLACES,
        "queries/adults.gq": ADULTS,
        "policies/team.policy.yaml": TEAM,
        "policies/server.policy.yaml": SERVER,
    }.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return where
