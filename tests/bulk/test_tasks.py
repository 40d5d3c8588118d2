"""The runner of bulk tasks in this process."""

from __future__ import annotations

import threading

import pytest

from omnigraph.bulk.tasks import JobProgress, ThreadTasks
from omnigraph.errors import InvalidInput


def test_results_come_in_the_order_of_the_specifications() -> None:
    first_may_end = threading.Event()

    def task(number: int) -> int:
        if number == 0:
            assert first_may_end.wait(10)
        else:
            first_may_end.set()
        return number * number

    assert ThreadTasks(parallelism=2).run("squares", task, range(5)) == [0, 1, 4, 9, 16]


def test_the_error_of_the_first_failed_task_is_raised() -> None:
    second_failed = threading.Event()

    def task(number: int) -> None:
        if number == 0:
            assert second_failed.wait(10)
        else:
            second_failed.set()
        raise InvalidInput(f"task {number}")

    with pytest.raises(InvalidInput, match="task 0"):
        ThreadTasks(parallelism=2).run("failing", task, range(4))


def test_no_more_tasks_run_at_a_time_than_the_runner_has_threads() -> None:
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2)

    def task(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(10)
        with lock:
            running -= 1
        both.wait(10)

    ThreadTasks(parallelism=2).run("counting", task, range(6))
    assert most == 2


def test_progress_counts_the_tasks_that_are_done() -> None:
    seen: list[JobProgress] = []
    ThreadTasks(seen.append, parallelism=2).run("reading", str, range(3))
    assert seen == [JobProgress("reading", 3, done) for done in (1, 2, 3)]
