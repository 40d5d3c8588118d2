"""The queue of short queries: order, interruption, failing queries.

Tests the internals of ``engine/short_query_queue.py``: the state of the lock and its waiters.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.engine import Reader
from omnigraph.engine.short_query_queue import RECORDED_MAX, SHORT_S, ShortQueryQueue
from omnigraph.errors import OmnigraphError
from tests.graphs import people_graph, repository

QUERY = "query q() { match { $p: Person } return { $p.name } }"


@pytest.fixture
def queue() -> ShortQueryQueue:
    found = ShortQueryQueue()
    found.record("short", SHORT_S / 2)
    found.record("long", SHORT_S)
    return found


def wait_for(queue: ShortQueryQueue, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(queue._waiting) < count and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(queue._waiting) == count


def test_waiting_queries_run_in_the_order_of_their_arrival(queue: ShortQueryQueue) -> None:
    first = queue.enter("short")
    order: list[int] = []

    def ask(number: int) -> None:
        slot = queue.enter("short")
        order.append(number)
        slot.leave()

    threads = []
    for number in range(6):
        threads.append(threading.Thread(target=ask, args=(number,)))
        threads[-1].start()
        wait_for(queue, number + 1)
    assert order == []
    first.leave()
    first.leave()
    for thread in threads:
        thread.join(30)
    assert order == list(range(6))
    assert not queue._taken


def test_long_and_unknown_queries_do_not_queue(queue: ShortQueryQueue) -> None:
    slot = queue.enter("short")
    for text in ("long", "never seen", None):
        queue.enter(text).leave()
        assert (queue._taken, len(queue._waiting)) == (True, 0), "the first query holds it"
    slot.leave()
    assert not queue._taken


def test_an_interrupted_waiter_leaves_the_queue(
    queue: ShortQueryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient:
        """A lock whose second acquirer is interrupted, before or after it was handed over."""

        def __init__(self, late: bool) -> None:
            self._taken = False
            self._late = late

        def acquire(self) -> None:
            if self._taken:
                if self._late:
                    slot.leave()
                raise KeyboardInterrupt
            self._taken = True

        def release(self) -> None:
            pass

    for late in (False, True):
        slot = queue.enter("short")
        with monkeypatch.context() as patch:
            patch.setattr("omnigraph.storage.named_locks.Lock", lambda late=late: Impatient(late))
            with pytest.raises(KeyboardInterrupt):
                queue.enter("short")
        slot.leave()
        assert (queue._taken, list(queue._waiting)) == (False, [])


def test_the_number_of_recorded_texts_is_bounded() -> None:
    queue = ShortQueryQueue()
    for at in range(RECORDED_MAX + 10):
        queue.record(f"text {at}", 0.0)
    assert len(queue._last) <= RECORDED_MAX


def test_a_failing_query_leaves_the_queue(tmp_path: Path) -> None:
    reader = Reader(repository(people_graph(tmp_path / "g")))
    reader.query(QUERY)
    reader._queue.record(QUERY, 0.0)
    with pytest.raises(OmnigraphError):
        reader.query(QUERY, "nothing")
    assert not reader._queue._taken
    assert reader.query(QUERY).rows()


def test_a_query_that_loads_something_leaves_the_queue_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(repository(people_graph(tmp_path / "g")))
    reader._queue.record(QUERY, 0.0)
    taken: list[bool] = []
    scan = type(reader.repository.tables.open(reader.pin().pin("node:Person").ref)).scan

    def noted(self: Any, *arguments: Any, **named: Any) -> Any:
        taken.append(reader._queue._taken)
        return scan(self, *arguments, **named)

    monkeypatch.setattr("omnigraph.storage.lance.tables.PinnedTable.scan", noted)
    assert reader.query(QUERY).rows()
    assert taken
    assert not any(taken)
