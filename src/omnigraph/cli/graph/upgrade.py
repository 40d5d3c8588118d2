"""``omnigraph upgrade``."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.catalog.migrations.upgrade import UpgradeReport
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import direct_verb
from omnigraph.errors import InvalidInput

app = single("Bring a graph to the current format.")

CheckOption = Annotated[
    bool, typer.Option("--check", help="Say what would be done; the default. Changes nothing.")
]
ApplyOption = Annotated[bool, typer.Option("--apply", help="Do it, on every branch.")]


@command(app, direct_verb("upgrade", store=True))
def upgrade(
    call: Call, uri: UriArgument = None, check: CheckOption = False, apply: ApplyOption = False
) -> Result:
    """Say which format every branch has and which steps lead to the current one; take them.

    Writing to a branch takes its steps anyway. Commits and their history stay as they are.
    """
    if check and apply:
        raise InvalidInput(
            "--check and --apply exclude each other", remedy="Give one of them; --check is first."
        )
    location = call.address(uri)
    call.echo(location)
    # Looked at before it is opened for writing: that takes the steps of main by itself.
    report = omnigraph.open(location.uri, read_only=True).upgrade()
    if apply:
        omnigraph.open(location.uri).upgrade(apply=True)
    data = {"uri": location.uri, **report.to_json(), "applied": apply}
    return Result(data, _lines(report, applied=apply))


def _lines(report: UpgradeReport, *, applied: bool) -> list[str]:
    if not report.needed:
        return [f"every branch has the current format, version {report.current}"]
    rows = [
        (
            one.branch,
            f"{step.source} → {step.source + 1}",
            step.says,
            ", ".join(step.touches) or "nothing to change",
        )
        for one in report.branches
        for step in one.steps
    ]
    older = sum(bool(one.steps) for one in report.branches)
    verb = "brought" if applied else "would bring"
    noun = "branch" if older == 1 else "branches"
    last = f"{verb} {older} {noun} to the current format, version {report.current}"
    return [*columns(rows), last if applied else f"{last}; say --apply to do it"]
