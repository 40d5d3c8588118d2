"""Checkpoints: where a long computation can be stopped.

A caller that wants to limit a computation installs a check; long computations call ``checkpoint``
between their steps. Without a check, ``checkpoint`` does nothing. The check is a context variable:
other threads have their own, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TypeAlias

Check: TypeAlias = Callable[[], None]
"""Returns, or raises an error that says why the computation must stop."""

_installed: ContextVar[Check | None] = ContextVar("omnigraph_check", default=None)


def install(check: Check) -> Token[Check | None]:
    """Make ``checkpoint`` call ``check`` until ``remove``."""
    return _installed.set(check)


def remove(token: Token[Check | None]) -> None:
    _installed.reset(token)


def checkpoint() -> None:
    """Call the installed check, if any. Cheap: meant to be called every few milliseconds."""
    check = _installed.get()
    if check is not None:
        check()
