"""Only ``settings.py`` reads the environment of the process; the exceptions are named (ADR 29)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"

ALLOWED = {
    "settings.py": "reads every setting",
    "storage/__init__.py": "sets LANCE_LOG before Lance is imported",
    "storage/failpoints.py": "arms failpoints in child processes, at import",
    "server/process_environment.py": "sets what the workers of a server inherit",
    "spark/session/process_environment.py": "sets what Java and PySpark workers inherit",
}
"""The modules that may use the environment of the process, each with its reason."""


def uses_environment(text: str) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "putenv"))
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and any(alias.name in ("environ", "getenv", "putenv") for alias in node.names)
        )
        for node in ast.walk(ast.parse(text))
    )


def test_only_the_named_modules_use_the_environment() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if uses_environment(path.read_text("utf-8"))
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    "text",
    ["import os\nos.environ['A'] = 'b'", "import os\nos.getenv('A')", "from os import environ"],
)
def test_a_use_of_the_environment_would_be_noticed(text: str) -> None:
    assert uses_environment(text)
