"""What the commands that copy a graph share."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.output import Result
from omnigraph.cli.sizes import size_text
from omnigraph.maintenance.backup import CopyReport

TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="Where the copy is: a path, file:// or s3://.")
]


def copied(uri: str, report: CopyReport) -> Result:
    """A finished copy, in words and as data."""
    lines = [
        f"{report.uri} holds commit {report.commit_id} and {report.branches} branches",
        f"copied {report.files} files, {size_text(report.bytes)}; "
        f"{report.files_there} files, {size_text(report.bytes_there)}, were there",
    ]
    return Result({"uri": uri, **report.to_json()}, lines)
