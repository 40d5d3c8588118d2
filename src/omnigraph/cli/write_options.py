"""What the commands that write share: the flags of a commit, parameters."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.arguments import read_text, several
from omnigraph.cli.commands import Invocation
from omnigraph.errors import InvalidInput
from omnigraph.lang.query import read_parameters
from omnigraph.storage.locations import Location

MessageOption = Annotated[
    str | None,
    typer.Option("--message", "-m", metavar="TEXT", help="Why; kept with the commit."),
]
MetadataOption = Annotated[
    list[str] | None,
    several("--meta", "KEY=VALUE", "Kept with the commit."),
]
IfCommitOption = Annotated[
    str | None,
    typer.Option(
        "--if-commit",
        metavar="ID",
        help="Only if this is the head of the branch; otherwise exit with 4.",
        show_default=False,
    ),
]
IdempotencyOption = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="Repeating a request with its key returns the first one's commit.",
        show_default=False,
    ),
]
ParamsOption = Annotated[
    str | None,
    typer.Option("--params", metavar="JSON", help="Parameters as JSON.", show_default=False),
]
ParamsFileOption = Annotated[
    str | None,
    typer.Option(
        "--params-file", metavar="FILE", help="A file with the parameters.", show_default=False
    ),
]


def parameters(text: str | None, file: str | None) -> Mapping[str, Any] | None:
    """The parameters of a query, from at most one of their two sources."""
    if text is not None and file is not None:
        raise InvalidInput("both --params and --params-file are given", remedy="Keep one of them.")
    if file is not None:
        text = read_text(Path(file), "parameter file")
    found: Mapping[str, Any] | None = None if text is None else read_parameters(text)
    return found


def pairs(given: list[str] | None, flag: str) -> dict[str, str]:
    """Repeated ``KEY=VALUE`` flags."""
    found: dict[str, str] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"{flag} {text!r} is not KEY=VALUE", remedy="Write NAME=VALUE.")
        found[key] = value
    return found


def confirm(call: Invocation, location: Location, what: str) -> None:
    """Ask before something is destroyed that is not on this machine."""
    if location.is_local or call.flags.yes:
        return
    if sys.stdin.isatty() and not call.flags.json:
        print(f"{what} at {location.uri}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InvalidInput(
        f"{what} at {location.uri} was not confirmed", remedy="Pass --yes to confirm."
    )
