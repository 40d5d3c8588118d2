"""The examples in the docstrings of the public API work as written."""

from __future__ import annotations

import doctest
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from tests.graphs import people_graph

import omnigraph

MODULES = ("branches", "connect", "graph", "history", "maintenance", "spark", "tags", "views")


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    found = []
    for name in MODULES:
        module = import_module(f"omnigraph.graph.{name}")
        found += [test for test in finder.find(module) if test.examples]
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People, with a tag ``v1`` and a branch ``dev`` that has one more city."""
    where = tmp_path_factory.mktemp("examples") / "people"
    graph = people_graph(where)
    graph.tags.create("v1")
    graph.branches.create("dev")
    with graph.write("dev", message="a city") as batch:
        batch.insert("City", {"name": "Rome"})
    return where


@pytest.mark.parametrize("example", examples(), ids=lambda test: test.name.rpartition("graph.")[2])
def test_an_example_works_as_written(
    example: doctest.DocTest, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(template, tmp_path / "people")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    example.globs = {"omnigraph": omnigraph, "graph": omnigraph.open("people")}
    failed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=failed.append)
    assert not failed, "".join(failed)
