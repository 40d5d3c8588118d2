"""``omnigraph init``: create a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import omnigraph
from omnigraph import Graph
from omnigraph.cli.addressing import direct_verb, refuse_cluster_graph
from omnigraph.cli.arguments import LOCATION_FORMS, read_text
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult
from omnigraph.lang.syntax.diagnostics import SourceError
from omnigraph.lang.syntax.source import Source

app = single("Create a graph.")


@command(app, direct_verb("init"))
def init(
    call: Invocation,
    uri: Annotated[str, typer.Argument(metavar="URI", help=f"The location: {LOCATION_FORMS}.")],
    schema: Annotated[str, typer.Option("--schema", metavar="FILE", help="The schema (.pg).")],
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Has no effect: files of an unfinished init never prevent a new one.",
        ),
    ] = False,
) -> CommandResult:
    """Create an empty graph with the given schema.

    A location that already holds a graph is refused, with or without --force.
    """
    location = call.address(uri)
    text = read_text(Path(schema), "schema")
    refuse_cluster_graph(location, call.settings.storage)
    graph = _create(call, location.uri, text, schema)
    (commit,) = graph.history.commits(limit=1)
    data = {"uri": graph.uri, "commit": commit.to_json()}
    return CommandResult(data, [f"initialized {graph.uri}"])


def _create(call: Invocation, uri: str, text: str, name: str) -> Graph:
    try:
        return omnigraph.init(uri, text, settings=call.settings)
    except SourceError as error:
        # The handle knows only the text: add the name of the file to the error.
        raise SourceError(Source(name, text), error.diagnostics, error.omitted) from None
