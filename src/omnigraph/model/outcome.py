"""The outcome of a write whose caller is interrupted: a note on the exception.

Ctrl-C, ``SystemExit`` or a ``MemoryError`` can arrive before, during and after a commit. Code that
commits records it here; ``noting_outcome`` adds the outcome to the exception as a note (PEP 678),
which a traceback and the command line show. Errors of our own tree need no note: their text says
what happened. The record is kept per thread. It must never change what happens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import OmnigraphError

NOTHING: Final = "nothing was written"


class WriteOutcome:
    """What one call has made visible so far."""

    def __init__(self) -> None:
        self.commits: list[str] = []
        self.undecided: list[str | None] = []
        self.changed = False

    def sentence(self) -> str:
        """The note for a caller that is interrupted now."""
        if self.undecided:
            commit_id = self.undecided[-1]
            if commit_id is None:
                return "it is not known whether it took effect"
            return (
                f"it is not known whether {commit_id} was committed; "
                f"`omnigraph commit show {commit_id}` finds it if it was"
            )
        if self.commits:
            return f"the write was committed as {', '.join(self.commits)}"
        if self.changed:
            return "no commit was made; what was finished before stays"
        return NOTHING


class _PerThread(threading.local):
    outcome: WriteOutcome | None = None


_current = _PerThread()


def committed(commit_id: str | None) -> None:
    """Something of this call is visible: under this commit id, or without a commit."""
    outcome = _current.outcome
    if outcome is None:
        return
    if commit_id is None:
        outcome.changed = True
    elif commit_id not in outcome.commits:
        outcome.commits.append(commit_id)


def works_in_steps() -> None:
    """This call does its work in steps that each stay: copies, or removes, file by file."""
    committed(None)


def undecided(commit_id: str | None) -> None:
    """This call ends without knowing whether the commit is visible."""
    if _current.outcome is not None:
        _current.outcome.undecided.append(commit_id)


@contextmanager
def noting_outcome() -> Iterator[WriteOutcome]:
    """Add to an exception that interrupts the block what became of the writes in it.

    Blocks may be nested; the outermost one adds the note.
    """
    if _current.outcome is not None:
        yield _current.outcome
        return
    _current.outcome = found = WriteOutcome()
    try:
        yield found
    except OmnigraphError:
        raise
    except BaseException as stop:
        stop.add_note(f"Omnigraph: {found.sentence()}.")
        raise
    finally:
        _current.outcome = None
