"""``omnigraph revert``."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriOption
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import data_verb
from omnigraph.cli.versions.branch import LevelOption, ResolveOption, StrategyOption, decisions
from omnigraph.cli.versions.undo import CommitArgument, undone
from omnigraph.cli.writing import IfCommitOption, MessageOption

app = single("Undo a commit.")


@command(app, data_verb("revert"))
def revert(
    call: Call,
    commit_id: CommitArgument,
    uri: UriOption = None,
    branch: BranchOption = "main",
    level: LevelOption = "property",
    strategy: StrategyOption = None,
    resolve: ResolveOption = None,
    message: MessageOption = None,
    if_commit: IfCommitOption = None,
) -> Result:
    """Undo a commit with a new one. What was changed again since then is a conflict."""
    location = call.address(uri)
    call.echo(location)
    made = omnigraph.open(location.uri).revert(
        commit_id,
        branch,
        message=message,
        actor=call.actor,
        expected_head=if_commit,
        **decisions(level, strategy, resolve),
    )
    return undone(made, f"reverted {commit_id} on {branch}")
