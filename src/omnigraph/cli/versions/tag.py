"""``omnigraph tag``: names for commits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import UriOption
from omnigraph.cli.frame import Call, command, group
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import data_verb
from omnigraph.cli.writing import MessageOption

app = group("Name commits, and list or remove names.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tag.")]


@command(app, data_verb("tag create"))
def create(
    call: Call,
    name: NameArgument,
    target: Annotated[
        str, typer.Argument(metavar="REF", help="A branch, a commit or a tag.")
    ] = "main",
    uri: UriOption = None,
    force: Annotated[bool, typer.Option("--force", help="Move a tag that exists.")] = False,
    message: MessageOption = None,
) -> Result:
    """Name a commit. The name stays where it is, and keeps the commit readable."""
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri)
    tag = graph.tag(name, target, force=force, actor=call.actor, message=message)
    return Result(tag.to_json(), [f"tagged {tag.commit_id} as {tag.name}"])


@command(app, data_verb("tag list", actor=False))
def list_tags(call: Call, uri: UriOption = None) -> Result:
    """List the tags with the commits they name."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    rows = [
        (
            tag.name,
            tag.commit_id,
            datetime.fromtimestamp(tag.created_at_us / 1e6, UTC).isoformat(" ", "seconds"),
            tag.message or "",
        )
        for tag in graph.tags()
    ]
    return Result({"tags": [tag.to_json() for tag in graph.tags()]}, columns(rows))


@command(app, data_verb("tag delete"))
def delete(call: Call, name: NameArgument, uri: UriOption = None) -> Result:
    """Remove a tag."""
    location = call.address(uri)
    call.echo(location)
    tag = omnigraph.open(location.uri).delete_tag(name)
    return Result(tag.to_json(), [f"deleted tag {tag.name} (was {tag.commit_id})"])
