"""What the commands that undo or repeat something share."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph import Commit
from omnigraph.cli.output import CommandResult

CommitArgument = Annotated[str, typer.Argument(metavar="COMMIT", help="The commit's id.")]
StateArgument = Annotated[
    str, typer.Argument(metavar="REF", help="The older state: a commit, a tag or a time.")
]


def undone(made: Commit | None, done: str) -> CommandResult:
    if made is None:
        return CommandResult({"commit": None}, ["nothing to do"])
    return CommandResult({"commit": made.to_json()}, [f"{done}; commit {made.commit_id}"])
