"""What became of a write whose caller was interrupted: told on the exception that interrupts it.

Ctrl-C, ``SystemExit`` or a ``MemoryError`` can arrive before, during and after the commit. Whoever
commits something says so here; ``told`` adds it to the exception as a note (PEP 678) that the
caller, a traceback and the command line show. Errors of our own tree need no note: they say
themselves what happened. Kept per thread. It must never change what happens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.errors import OmnigraphError

NOTHING: Final = "nothing was written"


class Told:
    """What one call made visible so far."""

    def __init__(self) -> None:
        self.commits: list[str] = []
        self.undecided: list[str | None] = []
        self.changed = False

    def sentence(self) -> str:
        """What to tell a caller who is interrupted now."""
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
    told: Told | None = None


_current = _PerThread()


def committed(commit_id: str | None) -> None:
    """Something of this call is visible: under this commit id, or without a commit."""
    told = _current.told
    if told is None:
        return
    if commit_id is None:
        told.changed = True
    elif commit_id not in told.commits:
        told.commits.append(commit_id)


def works_in_steps() -> None:
    """This call does its work in steps that each stay: copies, or removes, file by file."""
    committed(None)


def undecided(commit_id: str | None) -> None:
    """This call ends without knowing whether the commit is visible."""
    if _current.told is not None:
        _current.told.undecided.append(commit_id)


@contextmanager
def told() -> Iterator[Told]:
    """Add to an exception that interrupts the block what became of the writes in it.

    Blocks may be nested; the outermost one tells. Also a decorator.
    """
    if _current.told is not None:
        yield _current.told
        return
    _current.told = found = Told()
    try:
        yield found
    except OmnigraphError:
        raise
    except BaseException as stop:
        stop.add_note(f"Omnigraph: {found.sentence()}.")
        raise
    finally:
        _current.told = None
