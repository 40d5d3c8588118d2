"""Schemas and cases for the tests of the query language."""

from __future__ import annotations

import tomllib
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from omnigraph.lang.schema import AcceptedSchema, accept_schema

CASES = Path(__file__).parents[2] / "cases" / "query"


@cache
def schema(name: str) -> AcceptedSchema:
    path = CASES / "schemas" / f"{name}.pg"
    numbers = count(1)
    return accept_schema(path.read_text(), name=path.name, mint=lambda: f"id-{next(numbers)}")


def cases(*files: str) -> list[dict[str, Any]]:
    """All cases of these files; what a file says at its top holds for each of its cases."""
    found = []
    for file in files:
        body = tomllib.loads((CASES / f"{file}.toml").read_text())
        defaults = {key: value for key, value in body.items() if key not in ("cases", "case")}
        for case in (*body.get("cases", ()), *body.get("case", ())):
            found.append({**defaults, "file": file, **case})
    return found


def case_id(case: dict[str, Any]) -> str:
    return f"{case['rule']}-{case['name']}".replace(" ", "_")


def query_text(case: dict[str, Any]) -> str:
    """The whole text of a case that gives only parameters and a body."""
    if "query" in case:
        return str(case["query"])
    return f"query q({case.get('params', '')}) {{ {case['body']} }}"
