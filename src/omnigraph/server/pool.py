"""A bounded pool of threads in which requests call the engine.

A full queue is refused at once. The threads are daemons: a call that outlives a graceful stop ends
with the process, like in a crash.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from omnigraph.errors import ServiceUnavailable

Value = TypeVar("Value")
_STOP: Final = None


class EnginePool:
    """Runs functions in threads for one event loop."""

    def __init__(self, name: str, threads: int, waiting_max: int) -> None:
        self.name = name
        self._waiting_max = waiting_max
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._busy = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"omnigraph-{name}-{n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def size(self) -> int:
        return len(self._threads)

    @property
    def busy(self) -> int:
        """Calls that are running or waiting."""
        return self._busy

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return max(0, self._busy - len(self._threads))

    async def run(self, work: Callable[[], Value]) -> Value:
        """Run a function in a thread, in a copy of the caller's context."""
        if self.waiting >= self._waiting_max:
            raise ServiceUnavailable(
                f"{self._waiting_max} calls are waiting for the engine already",
                details={"queue": self.name},
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Value] = loop.create_future()
        self._busy += 1
        self._tasks.put((loop, future, contextvars.copy_context(), work))
        return await future

    def stop(self) -> None:
        """End the threads when what was handed to them is done."""
        for _ in self._threads:
            self._tasks.put(_STOP)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not _STOP:
            loop, future, context, work = task
            value, error = None, None
            try:
                value = context.run(work)
            except BaseException as problem:  # handed over to the request, whatever it is
                error = problem
            try:
                loop.call_soon_threadsafe(self._settle, future, value, error)
            except RuntimeError:  # the event loop has ended: nobody waits any more
                return

    def _settle(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._busy -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError("a generator was read past its end"))
        else:
            future.set_exception(error)
