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
    report = omnigraph.upgrade(location.uri, apply=apply, settings=call.settings)
    return CommandResult({"uri": location.uri, **report.to_json()}, _lines(report, applied=apply))


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
    if report.conversion is not None:
        return _conversion_lines(report, rows, applied=applied)
    older = sum(bool(one.steps) for one in report.branches)
    verb = "brought" if applied else "would bring"
    noun = "branch" if older == 1 else "branches"
    last = f"{verb} {older} {noun} to the current format, version {report.current}"
    return [*columns(rows), last if applied else f"{last}; say --apply to do it"]


def _conversion_lines(
    report: UpgradeReport, rows: list[tuple[str, str, str, str]], *, applied: bool
) -> list[str]:
    """A graph of the Rust original: its own steps, its unfinished writes, and the conversion."""
    assert report.conversion is not None
    lines = list(columns(rows)) if rows else []
    for record in report.conversion.records:
        verb = "was" if applied else "would be"
        lines.append(
            f"the unfinished {record.kind} {record.operation_id} on {record.branch} {verb} "
            f"{record.outcome}"
        )
    branches = ", ".join(one.branch for one in report.branches)
    if applied:
        return [*lines, f"converted a graph of the Rust Omnigraph: {branches}"]
    return [
        *lines,
        f"would convert a graph of the Rust Omnigraph: {branches}; say --apply to do it",
    ]
