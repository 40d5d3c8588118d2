"""``omnigraph upgrade``: bring a graph to the current format."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph import UpgradeReport
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns
from omnigraph.errors import InvalidInput

app = single("Bring a graph to the current format.")

CheckOption = Annotated[
    bool, typer.Option("--check", help="Show the pending migrations (the default).")
]
ApplyOption = Annotated[bool, typer.Option("--apply", help="Migrate every branch.")]


@command(app, direct_verb("upgrade", store=True))
def upgrade(
    call: Invocation,
    uri: UriArgument = None,
    check: CheckOption = False,
    apply: ApplyOption = False,
) -> CommandResult:
    """Show the format of every branch and the pending migrations; --apply runs them.

    The first write to a branch migrates it anyway. Commits and their history stay as they are.
    """
    if check and apply:
        raise InvalidInput(
            "--check and --apply exclude each other", remedy="Give one of them; run --check first."
        )
    location = call.address(uri)
    call.echo(location)
    # Read first: opening for writing already runs the migrations of main.
    report = omnigraph.open(
        location.uri, read_only=True, settings=call.settings
    ).maintenance.upgrade()
    if apply:
        omnigraph.open(location.uri, settings=call.settings).maintenance.upgrade(apply=True)
    data = {"uri": location.uri, **report.to_json(), "applied": apply}
    return CommandResult(data, _lines(report, applied=apply))


def _lines(report: UpgradeReport, *, applied: bool) -> list[str]:
    if not report.needed:
        return [f"every branch has the current format, version {report.current}"]
    rows = [
        (
            one.branch,
            f"{step.source} → {step.source + 1}",
            step.description,
            ", ".join(step.preview) or "nothing to change",
        )
        for one in report.branches
        for step in one.steps
    ]
    older = sum(bool(one.steps) for one in report.branches)
    verb = "brought" if applied else "would bring"
    noun = "branch" if older == 1 else "branches"
    last = f"{verb} {older} {noun} to the current format, version {report.current}"
    return [*columns(rows), last if applied else f"{last}; say --apply to do it"]
