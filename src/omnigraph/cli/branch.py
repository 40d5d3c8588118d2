"""``omnigraph branch``: create and list branches."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import UriOption
from omnigraph.cli.frame import Call, command, noun
from omnigraph.cli.output import Result
from omnigraph.cli.scope import data_verb

app = noun("Create, list, merge and delete branches.")


@command(app, data_verb("branch create"))
def create(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new branch.")],
    uri: UriOption = None,
    source: Annotated[
        str, typer.Option("--from", metavar="BRANCH", help="The branch to fork from.")
    ] = "main",
) -> Result:
    """Create a branch at the head of another one. Nothing is copied."""
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri)
    graph.create_branch(name, source)
    data = {"uri": graph.uri, "from": source, "name": name, "actor_id": call.actor}
    return Result(data, [f"created branch {name} from {source}"])


@command(app, data_verb("branch list"))
def list_branches(call: Call, uri: UriOption = None) -> Result:
    """List the branches, one name per line."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    names = sorted(graph.branches())
    return Result({"branches": names}, names)
