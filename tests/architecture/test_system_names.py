"""No module decides by a name alone whether a column is an end of an edge (ADR 20).

``src``, ``dst``, ``from`` and ``to`` are ordinary property names on a node type. What needs
the columns or the names of an edge's ends takes them from the type or from the catalog.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"
COLUMNS = frozenset({"src", "dst"})
WORDS = frozenset({"from", "to"})
CATALOG = "lang/schema/catalog.py"
"""The one module that spells the columns and the words out."""
WIRE = {
    "lang/schema/annotations.py": "the argument `to` of @rename_member",
    "lang/schema/change/steps.py": "the JSON of a step: what changes from what to what",
    "lang/query/plan/explain.py": "the JSON of a statement that inserts an edge",
    "cli/versions/branch.py": "the JSON of a branch that was created",
    "cli/versions/diff.py": "the image of an edge: its `endpoints` are there for edges only",
    "cluster/commands.py": "the JSON of a dependency between resources",
    "server/http/shapes.py": "the JSON of a branch that was created",
    "server/routes/branches.py": "the JSON of a branch that was created",
    "server/routes/history.py": "the parameters of a difference",
    "server/routes/loads.py": "the parameter of a load that names where its branch begins",
    "mcp/tools/branching.py": "the answer about a branch that was created",
    "engine/search/analyze.py": "a stop word of English",
    "spark/analytics/analysis.py": "the argument `to` of `Analysis.write`",
}
"""Modules with `from` or `to` as a field of a format, and which."""


def literals(text: str) -> Iterator[tuple[int, str, bool]]:
    """Every plain string that spells an end: its line, itself, and whether it is compared."""
    tree = ast.parse(text)
    compared = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in COLUMNS | WORDS:
            yield node.lineno, str(node.value), id(node) in compared


def findings(name: str, text: str) -> list[str]:
    if name == CATALOG:
        return []
    return [
        f"{name}:{line}: {word!r}"
        for line, word, is_compared in literals(text)
        if word in COLUMNS
        or name not in WIRE
        or (is_compared and name != "lang/schema/annotations.py")
    ]


def test_names_of_edge_ends_come_from_the_type() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        found += findings(name, path.read_text(encoding="utf-8"))
    assert found == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("snapshots/diff.py", 'ends = {n: row[n] for n in row if n in ("src", "dst")}'),
        ("mutation/mutation.py", 'column = {"from": "src"}.get(name, name)'),
        ("cli/versions/diff.py", 'if name == "from": pass'),
    ],
)
def test_a_decision_by_name_would_be_noticed(name: str, text: str) -> None:
    assert findings(name, text)


def test_every_exception_is_still_needed() -> None:
    for name in WIRE:
        assert list(literals((SOURCE / name).read_text(encoding="utf-8"))), name
