"""``omnigraph backup``: back a graph up, incrementally."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriOption
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.copy_report import TargetArgument, copied
from omnigraph.cli.output import CommandResult

app = single("Back a graph up, incrementally.")


@command(app, direct_verb("backup", store=True))
def backup(call: Invocation, target: TargetArgument, uri: UriOption = None) -> CommandResult:
    """Create a backup at an empty location, or update an earlier one.

    A backup holds all branches with their history and is a graph itself: to restore it, clone it
    to the location of the graph. Writers and readers are not blocked.
    """
    location = call.address(uri)
    report = omnigraph.open(
        location.uri, read_only=True, settings=call.settings
    ).maintenance.backup(target)
    return copied(location.uri, report)
