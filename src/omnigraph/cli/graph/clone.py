"""``omnigraph clone``."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import UriOption
from omnigraph.cli.copies import TargetArgument, copied
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import direct_verb

app = single("Copy a graph or a backup to an empty place.")


@command(app, direct_verb("clone", store=True))
def clone(call: Call, target: TargetArgument, uri: UriOption = None) -> Result:
    """Copy a graph, or a backup of one, with all branches and their history."""
    location = call.address(uri)
    report = omnigraph.open(location.uri, read_only=True).clone(target)
    return copied(location.uri, report)
