"""The target argument and the report of the commands that copy a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph import CopyReport
from omnigraph.cli.arguments import LOCATION_FORMS
from omnigraph.cli.output import CommandResult
from omnigraph.cli.units import size_text

TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help=f"The location of the copy: {LOCATION_FORMS}.")
]


def copied(uri: str, report: CopyReport) -> CommandResult:
    """A finished copy as text and as data."""
    lines = [
        f"{report.uri} holds commit {report.commit_id} and {report.branches} branches",
        f"copied {report.files} files, {size_text(report.bytes)}; "
        f"{report.files_there} files, {size_text(report.bytes_there)}, were there",
    ]
    return CommandResult({"uri": uri, **report.to_json()}, lines)
