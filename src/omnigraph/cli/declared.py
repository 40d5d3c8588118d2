"""Options and arguments of commands as plain data.

Commands declare what they take in these words. :mod:`omnigraph.cli.direct` reads plain command
lines by them; everything else (help, usage errors, conversions) is typer's, which gets the same
words. It must never import typer: that takes longer than a short command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.frozen import frozen


@frozen
class Declared:
    """How a parameter of a command function is given: by flags, or, without any, by its place."""

    flags: tuple[str, ...]
    settings: Mapping[str, Any]
    """What typer is told besides."""


def option(*flags: str, **settings: Any) -> Any:
    return Declared(flags, settings)


def argument(**settings: Any) -> Any:
    return Declared((), settings)
