"""``omnigraph export``."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import data_verb

app = single("Write a graph out as NDJSON.")


@command(app, data_verb("export", actor=False))
def export(
    call: Call,
    uri: UriArgument = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Which branch (main).")
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
            "--to", metavar="DIR", help="Write files to this new directory, in parallel on Spark."
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="With --to: ndjson, parquet or csv."),
    ] = "ndjson",
    jsonl: Annotated[bool, typer.Option("--jsonl", hidden=True)] = False,
) -> Result:
    """Print all nodes and edges as NDJSON: the same bytes whenever the content is the same."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    if target is not None:
        found = graph.export_to(target, format=format, branch=branch, at=at, types=types or None)
        rows = [(key, str(count)) for key, count in sorted(found.items())]
        return Result({"target": target, "format": format, "entities": found}, columns(rows))
    return Result(None, [], stream=graph.export(branch, at, types or None))
