"""``omnigraph restore``: restore entities from an older state."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, IfCommitOption, MessageOption, UriOption
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult
from omnigraph.cli.versions.options import StateArgument
from omnigraph.cli.versions.undo import undone
from omnigraph.errors import InvalidInput

app = single("Restore entities from an older state.")


@command(app, data_verb("restore"))
def restore(
    call: Invocation,
    target: StateArgument,
    things: Annotated[
        list[str],
        typer.Argument(metavar="KIND:TYPE[:ID]...", help="Types or entities: node:Person:ana."),
    ],
    uri: UriOption = None,
    branch: BranchOption = "main",
    message: MessageOption = None,
    if_commit: IfCommitOption = None,
) -> CommandResult:
    """Restore entities, or whole types, from an older state."""
    location = call.address(uri)
    call.echo(location)
    made = omnigraph.open(location.uri, settings=call.settings).restore(
        target,
        _chosen(things),
        branch,
        message=message,
        actor=call.actor,
        expected_head=if_commit,
    )
    return undone(made, f"restored {', '.join(things)} on {branch}")


def _chosen(things: list[str]) -> dict[str, list[str] | None]:
    """``node:Person:ana`` names an entity, ``node:Person`` all of a type."""
    found: dict[str, list[str] | None] = {}
    for thing in things:
        kind, _, rest = thing.partition(":")
        name, colon, id = rest.partition(":")
        if kind not in ("node", "edge") or not name:
            raise InvalidInput(
                f"{thing!r} names neither a type nor an entity",
                remedy="Write node:Person, or node:Person:ana.",
            )
        key = f"{kind}:{name}"
        if not colon:
            found[key] = None
        else:
            ids = found.setdefault(key, [])
            if ids is not None:
                ids.append(id)
    return found
