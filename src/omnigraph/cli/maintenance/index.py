"""``omnigraph index``: list, build and drop the indexes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import omnigraph
from omnigraph import IndexReport
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import (
    BranchOption,
    EntityArgument,
    MasterOption,
    TypeArgument,
    UriArgument,
    UriOption,
    type_key,
)
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult, columns
from omnigraph.cli.units import size_text

app = group("List, build and drop the indexes of a graph.")

PropertyArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROPERTY", help="Only its indexes.", show_default=False),
]


@command(app, direct_verb("index list", store=True))
def list_indexes(
    call: Invocation, uri: UriArgument = None, branch: BranchOption = "main"
) -> CommandResult:
    """List every index that is declared or stored, and its state."""
    location = call.address(uri)
    found = omnigraph.open(
        location.uri, read_only=True, settings=call.settings
    ).maintenance.indexes(branch)
    return CommandResult(_data(location.uri, branch, found), columns(map(_short, found)))


@command(app, direct_verb("index status", store=True))
def status(
    call: Invocation, uri: UriArgument = None, branch: BranchOption = "main"
) -> CommandResult:
    """Show the coverage, the number of parts and the size of each index."""
    location = call.address(uri)
    found = omnigraph.open(
        location.uri, read_only=True, settings=call.settings
    ).maintenance.indexes(branch)
    rows = [
        (
            *_short(item),
            f"{item.rows_covered}/{item.rows} rows",
            f"{item.parts} part{'' if item.parts == 1 else 's'}",
            size_text(item.size_bytes),
        )
        for item in found
    ]
    behind = sum(item.state in ("missing", "behind") for item in found)
    total = size_text(sum(item.size_bytes for item in found))
    last = f"{len(found)} indexes, {total}, {behind} to build"
    return CommandResult(_data(location.uri, branch, found), [*columns(rows), last])


@command(app, direct_verb("index build", store=True))
def build(
    call: Invocation,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="ENGINE", help="auto (by size), spark or local."),
    ] = "auto",
    master: MasterOption = None,
) -> CommandResult:
    """Build every index that is missing or stale. Queries get faster; results do not change."""
    location = call.address(uri)
    call.echo(location)
    settings = call.settings.with_master(master)
    chosen = engine if master is None else "spark"
    graph = omnigraph.open(location.uri, settings=settings)
    found = graph.maintenance.build_indexes(branch, engine=chosen)
    return CommandResult(_data(location.uri, branch, found), columns(map(_short, found)))


@command(app, direct_verb("index drop", store=True))
def drop(
    call: Invocation,
    entity: EntityArgument,
    type_name: TypeArgument,
    property: PropertyArgument = None,
    uri: UriOption = None,
    branch: BranchOption = "main",
) -> CommandResult:
    """Drop the stored indexes of a type. The next build makes the declared ones again."""
    location = call.address(uri)
    call.echo(location)
    key = type_key(entity, type_name)
    gone = omnigraph.open(location.uri, settings=call.settings).maintenance.drop_indexes(
        key, property, branch
    )
    lines = [f"dropped {item.kind} on {item.type_key}.{item.property}" for item in gone]
    return CommandResult(_data(location.uri, branch, gone), lines)


def _short(item: IndexReport) -> tuple[str, str, str, str]:
    return item.type_key, item.property, item.kind, item.state


def _data(uri: str, branch: str, found: Sequence[IndexReport]) -> dict[str, object]:
    return {"uri": uri, "branch": branch, "indexes": [item.to_json() for item in found]}
