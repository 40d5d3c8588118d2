"""Outcomes of loads in a comparable form, to check that two engines agree."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.constraints import VIOLATIONS_SHOWN_MAX
from omnigraph.errors import OmnigraphError

_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


def outcome(graph: Graph, data: Any, **options: Any) -> Any:
    """The whole content after a load, or its error with all violations."""
    commits = len(graph.history.commits())
    try:
        result = graph.load(data, **options)
    except OmnigraphError as error:
        assert len(graph.history.commits()) == commits
        return error.code, error.details.get("total"), _violations(error)
    assert len(graph.history.commits()) == commits + (result.commit is not None)
    assert result.commit is not None or options["mode"] == "upsert"
    took = result.values_nulled, result.edges_repeated
    return result.nodes, result.edges, took, result.commit is None, content(graph)


def content(graph: Graph) -> list[str]:
    """All entities, without the ids that were made."""
    return sorted(_plain(line) for line in b"".join(graph.export()).decode().splitlines())


def _violations(error: OmnigraphError) -> Any:
    found = error.details.get("violations", [])
    if error.details.get("total", 0) > VIOLATIONS_SHOWN_MAX:
        return sorted({violation["rule"] for violation in found})
    return [_plain(repr(sorted(_named(violation).items()))) for violation in found]


def _named(violation: dict[str, Any]) -> dict[str, Any]:
    """A violation without an id that was made: an engine may not know it."""
    if _ULID.fullmatch(violation.get("id") or ""):
        return {name: value for name, value in violation.items() if name != "id"}
    return violation


def _plain(text: str) -> str:
    return _ULID.sub("<made>", text)


def two_graphs(empty: Path, folder: Path, stored: bytes) -> tuple[Graph, Graph]:
    """Two copies of one graph with some data."""
    first, second = folder / "first", folder / "second"
    shutil.copytree(empty, first)
    omnigraph.open(first).load(stored, mode="append", engine="local")
    shutil.copytree(first, second)
    return omnigraph.open(first), omnigraph.open(second)


def copied(graph: Graph, folder: Path) -> Graph:
    """A copy of a graph."""
    shutil.copytree(graph.uri.removeprefix("file://"), folder)
    return omnigraph.open(folder)
