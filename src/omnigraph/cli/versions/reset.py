"""``omnigraph reset``."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriOption
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import data_verb
from omnigraph.cli.versions.undo import StateArgument, undone
from omnigraph.cli.writing import IfCommitOption, MessageOption, confirm

app = single("Take a branch back to an older commit.")


@command(app, data_verb("reset"))
def reset(
    call: Call,
    target: StateArgument,
    uri: UriOption = None,
    branch: BranchOption = "main",
    message: MessageOption = None,
    if_commit: IfCommitOption = None,
) -> Result:
    """Make a branch hold what an older commit of it held, as a new commit."""
    location = call.address(uri)
    confirm(call, location, f"Reset branch {branch}")
    call.echo(location)
    made = omnigraph.open(location.uri).reset(
        target, branch, message=message, actor=call.actor, expected_head=if_commit
    )
    return undone(made, f"reset {branch} to {target}")
