"""Asks before a command destroys data of a graph that is not on this machine."""

from __future__ import annotations

import sys

from omnigraph.cli.commands import Invocation
from omnigraph.errors import InvalidInput
from omnigraph.storage.locations import Location


def confirm(call: Invocation, location: Location, what: str) -> None:
    """Ask whether to destroy data of a remote graph; raises unless confirmed or with --yes."""
    if location.is_local or call.flags.yes:
        return
    if sys.stdin.isatty() and not call.flags.json:
        print(f"{what} at {location.uri}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InvalidInput(
        f"{what} at {location.uri} was not confirmed", remedy="Pass --yes to confirm."
    )
