"""``omnigraph ingest``: the deprecated name of ``load``, with its lenient parser."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from omnigraph import LoadMode
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.data.load import describe, open_for_load
from omnigraph.cli.output import CommandResult

app = single("Load data with the lenient parser.")


@command(app, data_verb("ingest"))
def ingest(
    call: Invocation,
    uri: UriArgument = None,
    *,
    data: Annotated[str, typer.Option("--data", metavar="PATH", help="A file of records.")],
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="As of load.")] = "merge",
    branch: BranchOption = "main",
    base: Annotated[
        str,
        typer.Option(
            "--from", metavar="BRANCH", help="Create the branch from this one if it is missing."
        ),
    ] = "main",
) -> CommandResult:
    """Load records as one commit, with a more lenient parser than `load`."""
    graph = open_for_load(call, uri, mode)
    result = graph.load(
        data,
        mode=cast("LoadMode", mode),
        branch=branch,
        from_=base,
        strict=False,
        actor=call.actor,
    )
    return describe(graph, result)
