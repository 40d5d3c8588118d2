"""``omnigraph revert``: undo a commit."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, IfCommitOption, MessageOption, UriOption
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult
from omnigraph.cli.versions.options import (
    CommitArgument,
    LevelOption,
    ResolveOption,
    StrategyOption,
    decisions,
)
from omnigraph.cli.versions.undo import undone

app = single("Undo a commit.")


@command(app, data_verb("revert"))
def revert(
    call: Invocation,
    commit_id: CommitArgument,
    uri: UriOption = None,
    branch: BranchOption = "main",
    level: LevelOption = "property",
    strategy: StrategyOption = None,
    resolve: ResolveOption = None,
    message: MessageOption = None,
    if_commit: IfCommitOption = None,
) -> CommandResult:
    """Undo a commit with a new one. Later changes of the same values are conflicts."""
    location = call.address(uri)
    call.echo(location)
    made = omnigraph.open(location.uri, settings=call.settings).revert(
        commit_id,
        branch,
        message=message,
        actor=call.actor,
        expected_head=if_commit,
        **decisions(level, strategy, resolve),
    )
    return undone(made, f"reverted {commit_id} on {branch}")
