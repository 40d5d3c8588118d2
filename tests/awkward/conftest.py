"""The awkward graph: made once, copied for every test that changes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from tests.awkward.names import as_ndjson, records, schema_text


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three entities of every type. Never written to."""
    where = tmp_path_factory.mktemp("awkward") / "g"
    graph = omnigraph.init(where, schema_text())
    graph.load(as_ndjson(records()), mode="append", format="ndjson")
    return where


@pytest.fixture
def graph(template: Path, tmp_path: Path) -> Graph:
    """A copy to write to."""
    shutil.copytree(template, tmp_path / "g")
    return omnigraph.open(tmp_path / "g")


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph without entities. Never written to."""
    where = tmp_path_factory.mktemp("awkward-empty") / "g"
    omnigraph.init(where, schema_text())
    return where


@pytest.fixture
def fresh(empty: Path, tmp_path: Path) -> Callable[[str], Graph]:
    """Empty graphs of the same schema, by name."""

    def make(name: str) -> Graph:
        shutil.copytree(empty, tmp_path / name)
        return omnigraph.open(tmp_path / name)

    return make


@pytest.fixture(scope="session")
def still(template: Path) -> Graph:
    """The graph itself, for tests that only read."""
    return omnigraph.open(template, read_only=True)
