"""``omnigraph fsck``: check a graph for damage."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult, columns

app = single("Check a graph for damage.")

QuickOption = Annotated[bool, typer.Option("--quick", help="Follow references; read no rows.")]


@command(app, direct_verb("fsck", store=True))
def fsck(call: Invocation, uri: UriArgument = None, quick: QuickOption = False) -> CommandResult:
    """Check every reference and every row of every branch. Nothing is changed.

    Exits with 1 when anything is wrong.
    """
    location = call.address(uri)
    report = omnigraph.open(location.uri, read_only=True, settings=call.settings).maintenance.check(
        quick=quick
    )
    rows = [(f.branch, str(f.damage), f.subject, f.message) for f in report.findings]
    looked = f"{report.branches} branches, {report.tables} tables, {report.rows} rows"
    last = "no damage found" if report.healthy else f"{len(rows)} kinds of damage found"
    lines = [*columns(rows), f"{last} in {looked}"]
    data = {"uri": location.uri, **report.to_json()}
    return CommandResult(data, lines, EXIT_OK if report.healthy else EXIT_FAILURE)
