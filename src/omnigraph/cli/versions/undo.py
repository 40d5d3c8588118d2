"""The result of the commands that undo or repeat commits."""

from __future__ import annotations

from omnigraph import Commit
from omnigraph.cli.output import CommandResult


def undone(made: Commit | None, done: str) -> CommandResult:
    if made is None:
        return CommandResult({"commit": None}, ["nothing to do"])
    return CommandResult({"commit": made.to_json()}, [f"{done}; commit {made.commit_id}"])
