"""Graphs that the tests of this room start from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from tests.graphs import people_graph

CASES = Path(__file__).parent.parent / "cases"


@pytest.fixture
def people(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "people")


@pytest.fixture(scope="session")
def museum_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("museum") / "g"
    graph = omnigraph.init(where, (CASES / "write" / "mus.pg").read_text())
    graph.load(CASES / "write" / "mus.jsonl", mode="overwrite")
    return where


@pytest.fixture
def museum(museum_template: Path, tmp_path: Path) -> Graph:
    """A copy of MUS with its data: a first commit and a load."""
    shutil.copytree(museum_template, tmp_path / "museum")
    return omnigraph.open(tmp_path / "museum")
