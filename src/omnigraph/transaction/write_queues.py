"""In-process order: writers of one type on one branch take turns.

Queues spare the writers of one process conflicts they can avoid. They are not what makes concurrent
writes safe (other processes do not see them); that is the strict table commit and the publish.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

_queues: dict[tuple[str, str, str], threading.RLock] = {}
_queues_lock = threading.Lock()


@contextmanager
def turn(graph_uri: str, branch_incarnation: str, type_keys: Iterable[str]) -> Iterator[None]:
    """Hold the queues of these types, taken in one order so that nobody waits in a circle."""
    with ExitStack() as stack:
        for key in sorted(set(type_keys)):
            stack.enter_context(_queue(graph_uri, branch_incarnation, key))
        yield


def _queue(graph_uri: str, branch_incarnation: str, type_key: str) -> threading.RLock:
    with _queues_lock:
        return _queues.setdefault((graph_uri, branch_incarnation, type_key), threading.RLock())
