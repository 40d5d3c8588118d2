"""``omnigraph repair``: repair tables that another program changed."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult, columns

app = single("Repair tables that another program changed.")

ConfirmOption = Annotated[
    bool, typer.Option("--confirm", help="Publish maintenance that changed no row.")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="With --confirm: publish all other changes, too.")
]
RestoreOption = Annotated[
    bool, typer.Option("--restore", help="With --confirm: restore the published rows instead.")
]


@command(app, direct_verb("repair", store=True))
def repair(
    call: Invocation,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    confirm: ConfirmOption = False,
    force: ForceOption = False,
    restore: RestoreOption = False,
) -> CommandResult:
    """List the types that another program changed; --confirm repairs them.

    Exits with 1 if --confirm was given and a type could not be repaired.
    """
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri, read_only=not confirm, settings=call.settings)
    done = graph.maintenance.repair(branch, confirm=confirm, force=force, restore=restore)
    rows = [
        (
            one.type_key,
            one.classification,
            one.action,
            f"{one.published_version} → {one.head_version}",
            one.error or ", ".join(one.operations),
        )
        for one in done
        if one.classification != "no_drift"
    ]
    data = {
        "uri": location.uri,
        "confirm": confirm,
        "force": force,
        "restore": restore,
        "graph_manifest_version": graph.snapshot(branch).manifest_version,
        "datasets": [one.to_json() for one in done],
    }
    refused = any(one.action == "refused" for one in done)
    lines = columns(rows) or ["nothing to repair"]
    return CommandResult(data, lines, EXIT_FAILURE if refused else EXIT_OK)
