"""The outcome of a write whose caller is interrupted: a note on the exception.

Ctrl-C, ``SystemExit`` or a ``MemoryError`` can arrive before, during and after a commit. Code that
commits reports it here; ``noting_outcome`` adds the outcome to the exception as a note (PEP 678),
which a traceback and the command line show. An ``OmnigraphError`` gets no note: its text says what
happened. The record is kept per thread and influences nothing but the note.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import OmnigraphError

NOTHING: Final = "nothing was written"


class WriteOutcome:
    """The commits of one call so far, and whether the last one is in doubt."""

    def __init__(self) -> None:
        self.commits: list[str] = []
        self.undecided: list[str | None] = []
        self.changed = False

    def sentence(self) -> str:
        """The note for an interrupt that arrives now."""
        if self.undecided:
            commit_id = self.undecided[-1]
            if commit_id is None:
                return "it is not known whether the write took effect"
            return (
                f"it is not known whether {commit_id} was committed; "
                f"run `omnigraph commit show {commit_id}` to find out"
            )
        if self.commits:
            return f"the write was committed as {', '.join(self.commits)}"
        if self.changed:
            return "no commit was made; finished steps remain"
        return NOTHING


class _PerThread(threading.local):
    outcome: WriteOutcome | None = None


_current = _PerThread()


def committed(commit_id: str | None) -> None:
    """Record that a change of this call is visible: as a commit, or (None) without one."""
    outcome = _current.outcome
    if outcome is None:
        return
    if commit_id is None:
        outcome.changed = True
    elif commit_id not in outcome.commits:
        outcome.commits.append(commit_id)


def works_in_steps() -> None:
    """Record that this call copies or removes files one by one, without a commit."""
    committed(None)


def undecided(commit_id: str | None) -> None:
    """Record that it is unknown whether the commit of this call is visible."""
    if _current.outcome is not None:
        _current.outcome.undecided.append(commit_id)


@contextmanager
def noting_outcome() -> Iterator[WriteOutcome]:
    """Add a note about the block's writes to an exception that interrupts it.

    Blocks may be nested; the outermost one adds the note.
    """
    if _current.outcome is not None:
        yield _current.outcome
        return
    _current.outcome = outcome = WriteOutcome()
    try:
        yield outcome
    except OmnigraphError:
        raise
    except BaseException as stop:
        stop.add_note(f"Omnigraph: {outcome.sentence()}.")
        raise
    finally:
        _current.outcome = None
