"""Tasks and their runner in this process: one function, one specification and one result per task.

A task returns a value or raises a typed error. The runner on Spark is ``spark/tasks.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from omnigraph.bulk.scratch import Scratch
from omnigraph.model.cores import cores

Spec = TypeVar("Spec")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of one job: the tasks of one call of ``Tasks.run``."""

    name: str
    tasks: int
    tasks_done: int


class Tasks(Protocol):
    """Runs tasks in any order and returns their results in the order of ``specs``.

    What all tasks share belongs into ``function`` (``functools.partial``), what is one task's own
    into its specification. ``light``: a single task runs on the driver, because it is smaller than
    a job.
    """

    @property
    def parallelism(self) -> int: ...

    def within(self, scratch: Scratch) -> Tasks:
        """The same tasks; large specifications and results may go through the scratch."""
        ...

    def run(
        self,
        name: str,
        function: Callable[[Spec], Result],
        specs: Sequence[Spec],
        *,
        light: bool = False,
    ) -> list[Result]: ...


class InProcessTasks:
    """Runs tasks in this process, one after the other."""

    parallelism = 1

    def within(self, scratch: Scratch) -> InProcessTasks:
        return self

    def run(
        self,
        name: str,
        function: Callable[[Any], Any],
        specs: Sequence[Any],
        *,
        light: bool = False,
    ) -> list[Any]:
        return [function(spec) for spec in specs]


class ThreadTasks:
    """Runs tasks on threads of this process, one per core.

    At most ``parallelism`` tasks run at a time, which bounds the memory. When tasks fail, the
    error of the first of them in the order of ``specs`` is raised; tasks that have not begun
    are not started.
    """

    def __init__(
        self,
        progress: Callable[[JobProgress], None] | None = None,
        parallelism: int | None = None,
    ) -> None:
        self.parallelism = parallelism or cores()
        self._progress = progress

    def within(self, scratch: Scratch) -> ThreadTasks:
        return self

    def run(
        self,
        name: str,
        function: Callable[[Any], Any],
        specs: Sequence[Any],
        *,
        light: bool = False,
    ) -> list[Any]:
        done, lock = 0, threading.Lock()

        def one(spec: Any) -> Any:
            nonlocal done
            result = function(spec)
            with lock:
                done += 1
                if self._progress is not None:
                    self._progress(JobProgress(name, len(specs), done))
            return result

        workers = min(self.parallelism, len(specs))
        if workers <= 1:
            return [one(spec) for spec in specs]
        with ThreadPoolExecutor(workers, thread_name_prefix="omnigraph-task") as pool:
            futures = [pool.submit(one, spec) for spec in specs]
            try:
                return [future.result() for future in futures]
            finally:
                _cancel(futures)


def _cancel(futures: Sequence[Future[Any]]) -> None:
    for future in futures:
        future.cancel()
