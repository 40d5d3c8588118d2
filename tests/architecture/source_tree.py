"""The modules of ``src/omnigraph``, read and parsed once for all tests of this folder."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"


@cache
def texts() -> dict[str, str]:
    """The text of every module, by its path below ``src/omnigraph``."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text("utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module."""
    return {name: ast.parse(text) for name, text in texts().items()}
