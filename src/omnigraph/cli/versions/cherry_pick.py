"""``omnigraph cherry-pick``."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriOption
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import data_verb
from omnigraph.cli.versions.branch import LevelOption, ResolveOption, StrategyOption, decisions
from omnigraph.cli.versions.undo import CommitArgument, undone
from omnigraph.cli.writing import IfCommitOption, MessageOption

app = single("Repeat a commit on another branch.")


@command(app, data_verb("cherry-pick"))
def cherry_pick(
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
    """Do on a branch what a commit did on another one."""
    location = call.address(uri)
    call.echo(location)
    made = omnigraph.open(location.uri).cherry_pick(
        commit_id,
        branch,
        message=message,
        actor=call.actor,
        expected_head=if_commit,
        **decisions(level, strategy, resolve),
    )
    return undone(made, f"picked {commit_id} onto {branch}")
