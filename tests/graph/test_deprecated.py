"""The method names of 0.1 work for one release, and warn with the new spelling."""

from __future__ import annotations

import pickle
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import people_graph

from omnigraph import Graph
from omnigraph.graph.deprecated import OLD_NAMES


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return people_graph(tmp_path_factory.mktemp("deprecated") / "g")


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_old_name_stands_for_the_new_one_and_warns(graph: Any, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"use `graph.{OLD_NAMES[name]}`") as caught:
        found = getattr(graph, name)
    assert found == attrgetter(OLD_NAMES[name])(graph)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "expected", "instead"),
    [
        (lambda graph: graph.branches(), ["main"], "graph.branches.list"),
        (lambda graph: graph.tags(), [], "graph.tags.list"),
        (
            lambda graph: [event.op for event in graph.history("Person", "ana")],
            ["insert"],
            "graph.history.entity",
        ),
    ],
)
def test_a_group_can_be_called_like_the_method_it_replaces(
    graph: Any, call: Any, expected: Any, instead: str
) -> None:
    with pytest.warns(DeprecationWarning, match=instead) as caught:
        assert call(graph) == expected
    assert caught[0].filename == __file__


def test_other_names_are_missing_as_usual(graph: Any) -> None:
    with pytest.raises(AttributeError, match="'Graph' object has no attribute 'create'"):
        _ = graph.create
    assert not hasattr(graph, "_missing")


def test_no_old_name_hides_a_new_one() -> None:
    assert not set(OLD_NAMES) & set(dir(Graph))


def test_a_handle_survives_pickling_without_a_warning(graph: Any, tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(graph))
    assert again.branches.list() == ["main"]
