"""``omnigraph mutate``: run a write query."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import (
    BranchOption,
    IdempotencyOption,
    IfCommitOption,
    MessageOption,
    MetadataOption,
    ParamsFileOption,
    ParamsOption,
    QuerySourceOption,
    QueryTextOption,
    UriOption,
    pairs,
    parameters,
    query_source,
)
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult

app = single("Run a write query.")


@command(app, data_verb("mutate"))
def mutate(
    call: Invocation,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The query, if there are several.", show_default=False),
    ] = None,
    uri: UriOption = None,
    query: QuerySourceOption = None,
    query_string: QueryTextOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = "main",
    if_commit: IfCommitOption = None,
    message: MessageOption = None,
    meta: MetadataOption = None,
    idempotency_key: IdempotencyOption = None,
) -> CommandResult:
    """Insert, update or delete with a write query: one commit, or none if nothing matched."""
    text = query_source(query, query_string)[0]
    given = parameters(params, params_file)
    graph = omnigraph.open(call.address(uri).uri, settings=call.settings)
    result = graph.mutate(
        text,
        name,
        given,
        branch,
        message=message,
        actor=call.actor,
        metadata=pairs(meta, "--meta"),
        expected_head=if_commit,
        idempotency_key=idempotency_key,
    )
    counts = f"{result.affected_nodes} nodes, {result.affected_edges} edges"
    commit = "nothing to commit" if result.commit is None else f"commit {result.commit.commit_id}"
    return CommandResult(result.to_json(), [f"{result.query_name}: {counts}; {commit}"])
