"""Options and arguments of commands as plain data.

Commands declare what they take in these words. :mod:`omnigraph.cli.direct` reads plain command
lines by them; everything else (help, usage errors, conversions) is typer's, which gets the same
words. It must never import typer: that takes longer than a short command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Declared:
    """How a parameter of a command function is given: by flags, or, without any, by its place."""

    flags: tuple[str, ...]
    settings: Mapping[str, Any]
    """What typer is told besides."""


def option(*flags: str, **settings: Any) -> Any:
    return Declared(flags, settings)


def argument(**settings: Any) -> Any:
    return Declared((), settings)


REQUIRED: Final = object()
"""The default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a command function, and how it is given."""

    name: str
    kind: Any
    declared: Declared
    default: Any = REQUIRED


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """What a command function takes besides its first argument."""
    code = function.__code__
    placed = code.co_varnames[: code.co_argcount]
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    last = function.__defaults__ or ()
    defaults = dict(zip(reversed(placed), reversed(last), strict=False))
    defaults |= function.__kwdefaults__ or {}
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name in (*placed[1:], *named):
        kind, declared = get_args(hints[name])
        found.append(Parameter(name, kind, declared, defaults.get(name, REQUIRED)))
    return found
