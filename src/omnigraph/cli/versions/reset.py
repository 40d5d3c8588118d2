"""``omnigraph reset``: reset a branch to an older commit."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, IfCommitOption, MessageOption, UriOption
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.confirmation import confirm
from omnigraph.cli.output import CommandResult
from omnigraph.cli.versions.options import StateArgument
from omnigraph.cli.versions.undo import undone

app = single("Reset a branch to an older commit.")


@command(app, data_verb("reset"))
def reset(
    call: Invocation,
    target: StateArgument,
    uri: UriOption = None,
    branch: BranchOption = "main",
    message: MessageOption = None,
    if_commit: IfCommitOption = None,
) -> CommandResult:
    """Set a branch to the state of one of its older commits, as a new commit."""
    location = call.address(uri)
    confirm(call, location, f"Reset branch {branch}")
    call.echo(location)
    made = omnigraph.open(location.uri, settings=call.settings).reset(
        target, branch, message=message, actor=call.actor, expected_head=if_commit
    )
    return undone(made, f"reset {branch} to {target}")
