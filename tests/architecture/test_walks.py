"""The four walks go down and return: no ping-pong between rooms but what ARCHITECTURE.md names."""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.architecture.walks import ROOT, WALKS, Place, Walk, is_up

_ROW = re.compile(r"^\| `([\w/]+\.py)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)

_STOP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)
STOPS_MAX = 12
TITLES = {
    "A query": "query",
    "A mutation": "mutation",
    "A Spark load": "spark load",
    "A merge": "merge",
}


@cache
def exceptions() -> frozenset[tuple[str, str]]:
    """The module that calls back and the room it calls, of every row of the table."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    table = text.partition("\n## Callbacks\n")[2].partition("\n## ")[0]
    return frozenset(
        (module, room)
        for module, rooms in _ROW.findall(table)
        for room in re.findall(r"`(\w+)/`", rooms)
    )


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Walk]:
    return {name: run(tmp_path_factory.mktemp("walk")) for name, run in WALKS.items()}


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_calls_back_only_where_ARCHITECTURE_says_so(
    name: str, walks: dict[str, Walk]
) -> None:
    unnamed = {
        f"{caller} -> {callee}"
        for caller, callee in walks[name].callbacks
        if (caller.module, callee.room) not in exceptions()
    }
    assert unnamed == set(), "hand a value down, or name the callback and its reason"


def test_every_named_callback_happens(walks: dict[str, Walk]) -> None:
    happened = {
        (caller.module, callee.room) for walk in walks.values() for caller, callee in walk.callbacks
    }
    assert exceptions() - happened == set()


def test_a_walk_reaches_the_storage(walks: dict[str, Walk]) -> None:
    for name, walk in walks.items():
        assert {"graph", "catalog", "storage"} <= {stop.place.room for stop in walk.stops}, name


@pytest.mark.parametrize(
    ("caller", "callee", "expected"),
    [
        ("merge/merge.py", "prepare/committer.py", False),
        ("prepare/committer.py", "merge/merge.py", True),
        ("prepare/committer.py", "prepare/preparer.py", False),
        ("merge/merge.py", "mutation/batch.py", True),
    ],
)
def test_a_call_goes_up_when_its_room_is_above_or_beside(
    caller: str, callee: str, expected: bool
) -> None:
    assert is_up(Place(caller, "f"), Place(callee, "g")) is expected


@pytest.mark.parametrize(("title", "name"), TITLES.items())
def test_the_described_stops_are_those_of_the_walk(
    title: str, name: str, walks: dict[str, Walk]
) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.partition(f"\n### {title}\n")[2].partition("\n#")[0]
    stops = [Place(*found) for found in _STOP.findall(section)]
    assert 3 <= len(stops) <= STOPS_MAX
    called = list(walks[name].functions)
    assert [stop for stop in stops if stop not in called] == []
    assert stops == sorted(stops, key=called.index)
