"""``omnigraph blame``: who set the values of an entity."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import (
    BranchOption,
    EntityArgument,
    IdArgument,
    TypeArgument,
    UriOption,
    type_key,
)
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns
from omnigraph.cli.row_formats import cell
from omnigraph.cli.units import shown_time

app = single("Show who set the values of an entity.")


@command(app, data_verb("blame", actor=False))
def blame(
    call: Invocation,
    entity: EntityArgument,
    type_name: TypeArgument,
    id: IdArgument,
    uri: UriOption = None,
    branch: BranchOption = "main",
) -> CommandResult:
    """Show, for each property of an entity, the commit that set its current value."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    found = graph.history.blame(type_key(entity, type_name), id, branch)
    rows = [
        (
            item.property,
            cell(item.value),
            *(
                ("-", "-", "-", "cleaned up" if item.reclaimed else "")
                if item.commit is None
                else (
                    item.commit.commit_id,
                    shown_time(item.commit.created_at_us),
                    item.commit.actor or "-",
                    item.commit.message or "",
                )
            ),
        )
        for item in found
    ]
    return CommandResult({"properties": [item.to_json() for item in found]}, columns(rows))
