"""``omnigraph index``."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriArgument
from omnigraph.cli.frame import Call, command, noun
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import direct_verb

app = noun("Build the indexes of a graph.")


@command(app, direct_verb("index build", store=True))
def build(call: Call, uri: UriArgument = None, branch: BranchOption = "main") -> Result:
    """Build every index that is missing or behind. Answers stay the same, searches get faster."""
    location = call.address(uri)
    call.echo(location)
    reports = omnigraph.open(location.uri).build_indexes(branch)
    rows = [(item.type_key, item.property, item.kind, item.state) for item in reports]
    data = {"uri": location.uri, "branch": branch, "indexes": [r.to_json() for r in reports]}
    return Result(data, columns(rows))
