"""The owner of a write in flight, and how other processes detect that it died.

On one host a dead owner is detected at once: its process is gone, or its pid belongs to a process
that started at another time. An owner on another host, or one that is alive but stopped, has a
lease: other processes watch it on *their own* monotonic clock and may take over when it was not
renewed for the duration of a lease. Clocks of different hosts are never compared. Leases only
decide *when* another process may resolve a write; correctness depends on the manifest alone.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.model.clock import Clock

WATCHED_MAX = 10_000  # records watched per process; older observations are dropped first


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, identified uniquely: pids are reused, pid and start time are not."""

    host: str
    pid: int
    started: str


@cache
def _host() -> str:
    """This host since its last boot, and the pid namespace of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"node-{uuid.getnode():012x}"


_UNKNOWN = "unknown"


def _started(pid: int) -> str | None:
    """The start time of a process in kernel ticks; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return _started_portable(pid)  # no /proc, or one that hides processes of other users
    except ProcessLookupError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


def _started_portable(pid: int) -> str | None:
    """Without /proc, only the existence of the process can be checked."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return _UNKNOWN


def this_process() -> Owner:
    """This process as an owner."""
    return Owner(_host(), os.getpid(), _started(os.getpid()) or _UNKNOWN)


def is_certainly_dead(owner: Owner) -> bool:
    """Whether the owner ran on this host and is gone."""
    return owner.host == _host() and _started(owner.pid) not in (owner.started, _UNKNOWN)


class LeaseWatch:
    """How long observed values have not changed, by this process's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def unchanged_for(self, what: str, content: str) -> float:
        """Seconds since ``what`` was first seen with this content."""
        now = self._clock.monotonic()
        with self._lock:
            known = self._seen.get(what)
            if known is None or known[0] != content:
                self._seen[what] = (content, now)
                if len(self._seen) > WATCHED_MAX:
                    self._seen.pop(next(iter(self._seen)))
                return 0.0
            return now - known[1]

    def evict(self, what: str) -> None:
        with self._lock:
            self._seen.pop(what, None)
