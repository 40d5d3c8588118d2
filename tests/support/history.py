"""Histories of list-append operations: what several processes did to one graph, as data.

Every key holds a list of numbers, every number is appended at most once in the whole history, and
a read sees all keys it names at one commit. From such a history the order of versions of every key
can be read off, which is what makes it checkable (``tests.support.history_checker``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Lists = Mapping[str, tuple[int, ...]]


class Outcome(StrEnum):
    """What the process that ran an operation knows about it."""

    OK = "ok"  # acknowledged: it must be visible for ever
    FAILED = "failed"  # refused: it must never be visible
    UNKNOWN = "unknown"  # the process died or was told so: all of it or nothing


@dataclass(frozen=True, slots=True)
class Append:
    """One number appended to one key's list."""

    key: str
    value: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One transaction: a snapshot read of some keys at one commit, then appends, in one commit.

    ``at`` is the commit the read was made at, ``commit`` the one the appends made. ``invoked`` and
    ``completed`` are readings of one clock shared by all processes; an operation whose process
    died has no completion.
    """

    number: int
    process: str
    outcome: Outcome
    invoked: int
    completed: int | None = None
    appends: tuple[Append, ...] = ()
    read: Lists = field(default_factory=dict)
    at: str | None = None
    commit: str | None = None

    def describe(self) -> str:
        """The operation in a few words, for anomaly reports."""
        parts = [f"append {a.value} to {a.key}" for a in self.appends]
        if self.read:
            where = "" if self.at is None else f" at {self.at}"
            parts.insert(0, f"read {len(self.read)} keys{where}")
        return f"#{self.number} {self.process} {self.outcome}: {', '.join(parts) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class History:
    """All operations, the lists as they are in the end, and the graph's own chain of commits.

    ``commits`` is oldest first; without it (None) the checks that need it are left out.
    """

    operations: tuple[Operation, ...]
    final: Lists
    commits: tuple[str, ...] | None = None
