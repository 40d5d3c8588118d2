"""Checkpoints: where a long computation can be stopped.

The caller that bounds a computation installs a check; long computations call ``checkpoint``
between their steps. Without a check installed nothing happens. The check belongs to
the running context: computations in other threads have their own, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TypeAlias

Check: TypeAlias = Callable[[], None]
"""Returns, or raises an error that says why the computation may not go on."""

_installed: ContextVar[Check | None] = ContextVar("omnigraph_check", default=None)


def install(check: Check) -> Token[Check | None]:
    """Let ``checkpoint`` call this until ``remove``."""
    return _installed.set(check)


def remove(token: Token[Check | None]) -> None:
    _installed.reset(token)


def checkpoint() -> None:
    """Go on, or raise what the installed check raises. Cheap: meant for every few milliseconds."""
    check = _installed.get()
    if check is not None:
        check()
