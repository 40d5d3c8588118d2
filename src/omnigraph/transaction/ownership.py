"""Who owns a write in flight, and how others know whether the owner still lives.

On one host a dead owner is known at once: its process is gone, or its pid belongs to a process that
started at another time. An owner on another host, or one that lives but does not move, is given a
lease: others watch it on *their own* monotonic clock and may take over when nothing has changed for
that long. Clocks are never compared. Leases decide only *when* somebody may resolve a write; that
the result is right rests on the manifest alone.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.errors import InvalidInput
from omnigraph.model.ids import Clock

LEASE_S_DEFAULT = 15.0
LEASE_VARIABLE = "OMNIGRAPH_LEASE_SECONDS"
WATCHED_MAX = 10_000  # records watched per process; older observations are dropped first


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, named so that no later process is mistaken for it."""

    host: str
    pid: int
    started: str


@cache
def _host() -> str:
    """This host since its last boot, and the pid namespace in which our pids mean something."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"node-{uuid.getnode():012x}"


_UNKNOWN = "unknown"


def _started(pid: int) -> str | None:
    """When a process started, as the kernel counts; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return _started_portable(pid)  # no /proc, or one that hides what other users run
    except ProcessLookupError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


def _started_portable(pid: int) -> str | None:
    """Where /proc says nothing, all that can be asked is whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return _UNKNOWN


def this_process() -> Owner:
    """The owner that is this process."""
    return Owner(_host(), os.getpid(), _started(os.getpid()) or _UNKNOWN)


def is_certainly_dead(owner: Owner) -> bool:
    """Whether the owner ran on this host and is gone."""
    return owner.host == _host() and _started(owner.pid) not in (owner.started, _UNKNOWN)


def lease_seconds() -> float:
    """How long a write may show no sign of life before others may resolve it."""
    text = os.environ.get(LEASE_VARIABLE)
    if text is None:
        return LEASE_S_DEFAULT
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise InvalidInput(f"{LEASE_VARIABLE} is {text!r}; it must be a number of seconds")
    return value


class Watch:
    """How long this process has seen something unchanged, by its own clock."""

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

    def forget(self, what: str) -> None:
        with self._lock:
            self._seen.pop(what, None)
