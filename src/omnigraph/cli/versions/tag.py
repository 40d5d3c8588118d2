"""``omnigraph tag``: names for commits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import MessageOption, UriOption
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult, columns

app = group("Create, list and delete tags.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tag.")]


@command(app, data_verb("tag create"))
def create(
    call: Invocation,
    name: NameArgument,
    target: Annotated[
        str, typer.Argument(metavar="REF", help="A branch, a commit or a tag.")
    ] = "main",
    uri: UriOption = None,
    force: Annotated[bool, typer.Option("--force", help="Move a tag that exists.")] = False,
    message: MessageOption = None,
) -> CommandResult:
    """Tag a commit. A tag does not move, and cleanup keeps its commit."""
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri, settings=call.settings)
    tag = graph.tags.create(name, target, force=force, actor=call.actor, message=message)
    return CommandResult(tag.to_json(), [f"tagged {tag.commit_id} as {tag.name}"])


@command(app, data_verb("tag list", actor=False))
def list_tags(call: Invocation, uri: UriOption = None) -> CommandResult:
    """List the tags with the commits they name."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    rows = [
        (
            tag.name,
            tag.commit_id,
            datetime.fromtimestamp(tag.created_at_us / 1e6, UTC).isoformat(" ", "seconds"),
            tag.message or "",
        )
        for tag in graph.tags.list()
    ]
    return CommandResult({"tags": [tag.to_json() for tag in graph.tags.list()]}, columns(rows))


@command(app, data_verb("tag delete"))
def delete(call: Invocation, name: NameArgument, uri: UriOption = None) -> CommandResult:
    """Remove a tag."""
    location = call.address(uri)
    call.echo(location)
    tag = omnigraph.open(location.uri, settings=call.settings).tags.delete(name)
    return CommandResult(tag.to_json(), [f"deleted tag {tag.name} (was {tag.commit_id})"])
