"""The external ledger: the operations each process started and their reported outcomes.

One append-only file per process. A line is written before an operation begins and another when its
outcome is known; acknowledgements are synced to disk before the process goes on, so that a killed
process leaves exactly what it knew. Lists grow only at their ends: a line holds what was added
since the process's last line about the key, which keeps ledgers of long runs small and loses
nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.history import Append, Lists, Operation, Outcome


class Ledger:
    """The writing side: one process's file."""

    def __init__(self, path: Path, process: str) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._known: dict[str, tuple[int, ...]] = {}
        self._write({"event": "start", "process": process})

    def begin(self, number: int, appends: Iterable[Append] = ()) -> None:
        """An operation is about to begin."""
        pairs = [[a.key, a.value] for a in appends]
        self._write({"event": "begin", "number": number, "appends": pairs})

    def end(
        self,
        number: int,
        outcome: Outcome,
        *,
        at: str | None = None,
        read: Lists | None = None,
        commit: str | None = None,
        error: str | None = None,
    ) -> None:
        """Its outcome is known. An acknowledged commit is on disk when this returns."""
        line = {
            "event": "end",
            "number": number,
            "outcome": str(outcome),
            "at": at,
            "read": {key: self._delta(key, seen) for key, seen in (read or {}).items()},
            "commit": commit,
            "error": error,
        }
        self._write({name: value for name, value in line.items() if value is not None})
        if commit is not None:
            os.fsync(self._file.fileno())

    def _delta(self, key: str, seen: tuple[int, ...]) -> list[Any]:
        known = self._known.get(key, ())
        common = len(known) if seen[: len(known)] == known else 0
        self._known[key] = seen
        return [common, list(seen[common:])]

    def _write(self, line: dict[str, Any]) -> None:
        line["time"] = time.monotonic_ns()
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()


@dataclass(slots=True)
class Account:
    """What the ledgers of a run say, put together."""

    operations: list[Operation] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # one per operation that ended in an error

    @property
    def acknowledged(self) -> frozenset[str]:
        commits = (o.commit for o in self.operations if o.outcome is Outcome.OK)
        return frozenset(commit for commit in commits if commit is not None)


def read_ledgers(paths: Iterable[Path]) -> Account:
    """Put the ledgers of all processes together; a last line cut off by a kill is ignored."""
    account = Account()
    for path in sorted(paths):
        _read_ledger(path, account)
    account.operations.sort(key=lambda operation: operation.invoked)
    return account


def with_commits(operations: Iterable[Operation], made: Mapping[int, str]) -> list[Operation]:
    """The operations with the commits that the graph itself says they made."""
    return [replace(o, commit=o.commit or made.get(o.number)) for o in operations]


def _read_ledger(path: Path, account: Account) -> None:
    process = path.stem
    open_operations: dict[int, Operation] = {}
    known: dict[str, tuple[int, ...]] = {}
    for line in _lines(path):
        if line["event"] == "start":
            process = line["process"]
        elif line["event"] == "begin":
            appends = tuple(Append(key, value) for key, value in line["appends"])
            number = line["number"]
            open_operations[number] = Operation(
                number, process, Outcome.UNKNOWN, line["time"], appends=appends
            )
        else:
            begun = open_operations.pop(line["number"])
            for key, (common, added) in line["read"].items():
                known[key] = (*known.get(key, ())[:common], *added)
            account.operations.append(
                replace(
                    begun,
                    outcome=Outcome(line["outcome"]),
                    completed=line["time"],
                    read={key: known[key] for key in line["read"]},
                    at=line.get("at"),
                    commit=line.get("commit"),
                )
            )
            if "error" in line:
                account.errors.append(line["error"])
    account.operations += open_operations.values()  # the process died in the middle of them


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for text in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if text.endswith("\n"):
            yield json.loads(text)
