"""Short queries of many threads take turns, in the order they came."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.engine import Reader
from omnigraph.engine.short_query_queue import KNOWN_MAX, SHORT_S, Turns
from omnigraph.errors import OmnigraphError
from tests.graphs import people_graph, repository

QUERY = "query q() { match { $p: Person } return { $p.name } }"


@pytest.fixture
def turns() -> Turns:
    found = Turns()
    found.note("short", SHORT_S / 2)
    found.note("long", SHORT_S)
    return found


def wait_for(turns: Turns, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(turns._waiting) < count and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(turns._waiting) == count


def test_turns_are_passed_on_in_the_order_of_those_who_wait(turns: Turns) -> None:
    first = turns.of("short")
    order: list[int] = []

    def ask(number: int) -> None:
        turn = turns.of("short")
        order.append(number)
        turn.end()

    threads = []
    for number in range(6):
        threads.append(threading.Thread(target=ask, args=(number,)))
        threads[-1].start()
        wait_for(turns, number + 1)
    assert order == []
    first.end()
    first.end()
    for thread in threads:
        thread.join(30)
    assert order == list(range(6))
    assert not turns._taken


def test_long_and_unknown_queries_wait_for_nobody(turns: Turns) -> None:
    turn = turns.of("short")
    for text in ("long", "never seen", None):
        turns.of(text).end()
        assert (turns._taken, len(turns._waiting)) == (True, 0), "the turn is still the first one's"
    turn.end()
    assert not turns._taken


def test_who_no_longer_wants_to_wait_leaves_no_gap(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient:
        """A lock whose second taker is interrupted, before or after the turn came."""

        def __init__(self, late: bool) -> None:
            self._taken = False
            self._late = late

        def acquire(self) -> None:
            if self._taken:
                if self._late:
                    turn.end()
                raise KeyboardInterrupt
            self._taken = True

        def release(self) -> None:
            pass

    for late in (False, True):
        turn = turns.of("short")
        with monkeypatch.context() as patch:
            patch.setattr("omnigraph.storage.thread_queues.Lock", lambda late=late: Impatient(late))
            with pytest.raises(KeyboardInterrupt):
                turns.of("short")
        turn.end()
        assert (turns._taken, list(turns._waiting)) == (False, [])


def test_only_so_many_texts_are_remembered() -> None:
    turns = Turns()
    for at in range(KNOWN_MAX + 10):
        turns.note(f"text {at}", 0.0)
    assert len(turns._last) <= KNOWN_MAX


def test_a_failing_query_ends_its_turn(tmp_path: Path) -> None:
    reader = Reader(repository(people_graph(tmp_path / "g")))
    reader.query(QUERY)
    reader._turns.note(QUERY, 0.0)
    with pytest.raises(OmnigraphError):
        reader.query(QUERY, "nothing")
    assert not reader._turns._taken
    assert reader.query(QUERY).rows()


def test_a_query_that_has_to_load_something_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(repository(people_graph(tmp_path / "g")))
    reader._turns.note(QUERY, 0.0)
    taken: list[bool] = []
    scan = type(reader.repository.tables.open(reader.pin().pin("node:Person").ref)).scan

    def noted(self: Any, *arguments: Any, **named: Any) -> Any:
        taken.append(reader._turns._taken)
        return scan(self, *arguments, **named)

    monkeypatch.setattr("omnigraph.storage.lance.tables.PinnedTable.scan", noted)
    assert reader.query(QUERY).rows()
    assert taken
    assert not any(taken)
