"""``omnigraph export``: write a graph out as NDJSON."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns

app = single("Write a graph out as NDJSON.")


@command(app, data_verb("export", actor=False))
def export(
    call: Invocation,
    uri: UriArgument = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="The branch (default: main).")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="COMMIT", help="As of this commit.")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type. May be repeated."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="DIR", help="Write files to this new directory or store, in parallel."
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="With --to: ndjson, parquet, csv, arrow."),
    ] = "ndjson",
    jsonl: Annotated[bool, typer.Option("--jsonl", hidden=True)] = False,
) -> CommandResult:
    """Print all nodes and edges as NDJSON: the same bytes whenever the content is the same."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    if target is not None:
        found = graph.spark.export(target, format=format, branch=branch, at=at, types=types or None)
        rows = [(key, str(count)) for key, count in sorted(found.items())]
        return CommandResult({"target": target, "format": format, "entities": found}, columns(rows))
    return CommandResult(None, [], stream=graph.export(branch, at, types or None))
