"""``omnigraph recover``: resolve unfinished writes of dead processes."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult

app = single("Resolve unfinished writes of dead processes.")


@command(app, direct_verb("recover", store=True))
def recover(
    call: Invocation,
    uri: UriArgument = None,
    set_aside: Annotated[
        bool,
        typer.Option(
            "--set-aside",
            help="Also undo writes whose records cannot be read, and keep those files.",
        ),
    ] = False,
) -> CommandResult:
    """Resolve unfinished writes on every branch. The next write to a branch does the same.

    In a graph that was moved or copied, it makes the branches refer to the graph's own files.
    """
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri, settings=call.settings)  # runs recovery
    relocated = graph.maintenance.relocate()
    done = graph.maintenance.recover(set_aside=set_aside)
    resolved = [*graph.maintenance.recovered_at_open.resolved, *done.resolved]
    lines = [f"{relocated} versions of branches refer to this location now"] if relocated else []
    lines += [f"{r.action} {r.kind} {r.operation_id} on {r.branch}" for r in resolved]
    lines += [f"set aside {path}" for path in done.set_aside]
    lines += [f"cannot read {path}: try --set-aside" for path in done.unreadable]
    lines += [f"cannot resolve {name}: {problem}" for name, problem in done.unresolved.items()]
    data = {
        "uri": graph.uri,
        "relocated": relocated,
        "resolved": [
            {
                "operation_id": r.operation_id,
                "branch": r.branch,
                "kind": r.kind,
                "action": str(r.action),
                "commit_id": None if r.commit is None else r.commit.commit_id,
                "types": {key: found.what for key, found in r.tables.items()},
                "to_versions": {key: found.to_version for key, found in r.tables.items()},
            }
            for r in resolved
        ],
        "set_aside": done.set_aside,
        "unreadable": done.unreadable,
        "unresolved": {name: problem.to_json() for name, problem in done.unresolved.items()},
    }
    code = EXIT_FAILURE if done.unreadable or done.unresolved else EXIT_OK
    return CommandResult(data, lines or ["nothing to recover"], code)
