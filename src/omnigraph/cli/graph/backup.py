"""``omnigraph backup``."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import UriOption
from omnigraph.cli.copies import TargetArgument, copied
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import direct_verb

app = single("Copy a graph, and later what is new, to another place.")


@command(app, direct_verb("backup", store=True))
def backup(call: Call, target: TargetArgument, uri: UriOption = None) -> Result:
    """Begin a backup in an empty place, or bring an earlier one up to date.

    A backup holds all branches with their history and is a graph itself: to restore it, clone it
    to where the graph was. Writers and readers go on meanwhile.
    """
    location = call.address(uri)
    report = omnigraph.open(location.uri, read_only=True).backup(target)
    return copied(location.uri, report)
