"""``omnigraph ingest``: what ``load`` was called once, with its forgiving reader of records."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.data.load import describe, open_for_load
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import data_verb
from omnigraph.ingest.load import Mode

app = single("Load data with the forgiving reader.")


@command(app, data_verb("ingest"))
def ingest(
    call: Call,
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
) -> Result:
    """Load records as one commit, forgiving what `load` refuses."""
    graph = open_for_load(call, uri, mode)
    result = graph.load(
        data,
        mode=cast("Mode", mode),
        branch=branch,
        from_=base,
        strict=False,
        actor=call.actor,
    )
    return describe(graph, result)
