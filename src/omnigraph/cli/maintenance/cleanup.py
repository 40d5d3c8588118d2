"""``omnigraph cleanup``: remove old history and abandoned files."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.confirmation import confirm as ask
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult, columns
from omnigraph.cli.units import seconds, size_text

app = single("Remove old history and abandoned files.")

KeepOption = Annotated[
    int | None,
    typer.Option("--keep", metavar="N", help="Keep the newest N commits of every branch."),
]
OlderThanOption = Annotated[
    str | None,
    typer.Option("--older-than", metavar="D", help="Keep younger commits: 90s, 15m, 12h, 7d, 2w."),
]
ConfirmOption = Annotated[
    bool, typer.Option("--confirm", help="Remove it; without this flag it is a dry run.")
]


@command(app, direct_verb("cleanup", store=True))
def cleanup(
    call: Invocation,
    uri: UriArgument = None,
    keep: KeepOption = None,
    older_than: OlderThanOption = None,
    confirm: ConfirmOption = False,
) -> CommandResult:
    """Remove history outside both limits, and files that dead writers left a week ago or more.

    Heads, tagged commits, fork points and states that readers hold stay. Without
    --confirm nothing is removed.
    """
    location = call.address(uri)
    age = None if older_than is None else timedelta(seconds=seconds(older_than, "--older-than"))
    if confirm:
        ask(call, location, "Remove old history")
    call.echo(location)
    graph = omnigraph.open(location.uri, read_only=not confirm, settings=call.settings)
    report = graph.maintenance.cleanup(keep=keep, older_than=age, confirm=confirm)
    if not confirm:
        print(_policy(keep, older_than), file=sys.stderr)
    rows = [
        (
            one.type_key,
            f"{one.old_versions_removed} versions",
            f"{one.files_removed} files",
            size_text(one.bytes_removed),
            one.error or "",
        )
        for one in report.datasets
    ]
    commits = sum(report.commits_given_up.values())
    verb = "removed" if confirm else "would remove"
    last = f"{verb} {size_text(report.bytes_removed)}; the states of {commits} commits are given up"
    lines = [*columns(rows), last]
    waiting = sum(report.commits_in_grace.values())
    if waiting:
        grace_s = call.settings.limits.reader_grace_s
        lines.append(
            f"{waiting} commits stay for now: a state may be read for {grace_s:g} s after a newer "
            "one took its place (OMNIGRAPH_READER_GRACE_SECONDS)"
        )
    failed = any(one.error for one in report.datasets)
    data = {"uri": location.uri, **report.to_json()}
    return CommandResult(data, lines, EXIT_FAILURE if failed else EXIT_OK)


def _policy(keep: int | None, older_than: str | None) -> str:
    kept = [] if keep is None else [f"the newest {max(keep, 1)} commits of every branch"]
    kept += [] if older_than is None else [f"commits younger than {older_than}"]
    return f"keeping {' and '.join(kept)}; say --confirm to remove the rest"
