"""In-process locks: one writer per type and branch at a time.

They spare the threads of one process avoidable conflicts. They do not make concurrent writes safe,
because other processes do not see them: the strict table commit and the publish do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

_locks: dict[tuple[str, str, str], threading.RLock] = {}
_registry_lock = threading.Lock()


@contextmanager
def type_locks(graph_uri: str, branch_incarnation: str, type_keys: Iterable[str]) -> Iterator[None]:
    """Hold the locks of these types, acquired in sorted order to avoid deadlocks."""
    with ExitStack() as stack:
        for key in sorted(set(type_keys)):
            stack.enter_context(_lock(graph_uri, branch_incarnation, key))
        yield


def _lock(graph_uri: str, branch_incarnation: str, type_key: str) -> threading.RLock:
    with _registry_lock:
        return _locks.setdefault((graph_uri, branch_incarnation, type_key), threading.RLock())
