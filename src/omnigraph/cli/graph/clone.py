"""``omnigraph clone``: copy a graph or a backup to an empty location."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriOption
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.copy_report import TargetArgument, copied
from omnigraph.cli.output import CommandResult

app = single("Copy a graph or a backup to an empty location.")


@command(app, direct_verb("clone", store=True))
def clone(call: Invocation, target: TargetArgument, uri: UriOption = None) -> CommandResult:
    """Copy a graph, or a backup of one, with all branches and their history."""
    location = call.address(uri)
    report = omnigraph.open(location.uri, read_only=True, settings=call.settings).maintenance.clone(
        target
    )
    return copied(location.uri, report)
