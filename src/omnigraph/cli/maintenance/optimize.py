"""``omnigraph optimize``: compact small files and update indexes."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns

app = single("Compact small files and update indexes.")


@command(app, direct_verb("optimize", store=True))
def optimize(
    call: Invocation,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="local, or spark for large tables.")
    ] = "local",
) -> CommandResult:
    """Compact small files and update indexes. Writers and readers are not blocked.

    The history does not change.
    """
    location = call.address(uri)
    call.echo(location)
    done = omnigraph.open(location.uri, settings=call.settings).maintenance.optimize(
        branch, engine=engine
    )
    rows = [
        (
            one.type_key,
            one.skipped or ("optimized" if one.committed else "nothing to do"),
            f"{one.fragments_removed} files became {one.fragments_added}"
            if one.fragments_removed
            else "",
        )
        for one in done
    ]
    lines = columns(rows)
    for one in done:
        lines += [
            f"{one.type_key}.{name}: no index yet, {why}" for name, why in one.pending_indexes
        ]
    return CommandResult({"uri": location.uri, "datasets": [one.to_json() for one in done]}, lines)
