"""``omnigraph purge``: remove an entity from every branch and from all history."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import EntityArgument, IdArgument, TypeArgument, UriArgument, type_key
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.confirmation import confirm as ask
from omnigraph.cli.output import CommandResult, columns
from omnigraph.cli.units import size_text

app = single("Remove an entity from every branch and from all history.")

ConfirmOption = Annotated[
    bool, typer.Option("--confirm", help="Remove it; without this flag it is a dry run.")
]


@command(app, direct_verb("purge", store=True))
def purge(
    call: Invocation,
    entity: EntityArgument,
    type_name: TypeArgument,
    id: IdArgument,
    uri: UriArgument = None,
    confirm: ConfirmOption = False,
) -> CommandResult:
    """Remove a node with all its edges, or an edge, from every branch, tag and older state.

    Older states stay readable, without the entity. Copies that a purge cannot reach are listed.
    Without --confirm nothing is removed.
    """
    kind = type_key(entity, type_name).partition(":")[0]
    location = call.address(uri)
    if confirm:
        ask(call, location, f"Purge a {kind} from all history")
    call.echo(location)
    graph = omnigraph.open(location.uri, read_only=not confirm, settings=call.settings)
    report = graph.maintenance.purge(kind, type_name, id, confirm=confirm, actor=call.actor)
    rows = [
        (
            one.type_key,
            f"{one.versions - one.versions_given_up} versions rewritten",
            f"{one.versions_given_up} given up" if one.versions_given_up else "",
            f"{one.files} files",
            size_text(one.bytes),
        )
        for one in report.types
    ]
    done = "purged" if confirm else "would purge"
    where = [f"branch {name}" for name in report.branches] + [f"tag {n}" for n in report.tags]
    lines = [*columns(rows), f"{done} it from {', '.join(where) or 'older states only'}"]
    lines += [f"commit {found} mentions it" for found in report.commits]
    lines += ["out of reach:", *(f"  {text}" for text in report.out_of_reach)]
    if not confirm:
        lines.append("say --confirm to purge")
    return CommandResult({"uri": location.uri, **report.to_json()}, lines)
