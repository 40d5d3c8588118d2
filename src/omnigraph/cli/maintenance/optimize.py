"""``omnigraph optimize``."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import direct_verb

app = single("Join small files and bring indexes up to date.")


@command(app, direct_verb("optimize", store=True))
def optimize(
    call: Call,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="local, or spark for large tables.")
    ] = "local",
) -> Result:
    """Join small files and bring indexes up to date. Writers and readers go on meanwhile.

    Nothing is added to the history, and nothing is removed from it.
    """
    location = call.address(uri)
    call.echo(location)
    done = omnigraph.open(location.uri).optimize(branch, engine=engine)
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
    return Result({"uri": location.uri, "datasets": [one.to_json() for one in done]}, lines)
