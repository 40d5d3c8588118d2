"""``omnigraph embed``: the vectors of ``@embed`` properties."""

from __future__ import annotations

import time
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import BranchOption, MasterOption, UriArgument, use_master
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result, columns
from omnigraph.cli.progress import watcher
from omnigraph.cli.scope import data_verb
from omnigraph.cli.writing import MessageOption

app = single("Make vectors.")


@command(app, data_verb("embed"))
def embed(
    call: Call,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type. May be repeated."),
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", help="Make all vectors anew, not only some.")
    ] = False,
    commit_every: Annotated[
        int | None,
        typer.Option(
            "--commit-every",
            metavar="N",
            min=1,
            help="One commit per so many nodes, not one for all.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, help="Texts per request.")
    ] = 64,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", help="At most so many requests per second.", show_default=False
        ),
    ] = None,
    message: MessageOption = None,
    master: MasterOption = None,
) -> Result:
    """Make the vectors of @embed properties that are missing or whose text has changed.

    The provider is named by OMNIGRAPH_EMBED_PROVIDER; a run that was interrupted goes on.
    """
    location = call.address(uri)
    call.echo(location)
    use_master(master)
    started = time.perf_counter()
    found = omnigraph.open(location.uri).embed(
        branch,
        types=types or None,
        reembed_all=reembed_all,
        commit_every=commit_every,
        batch=batch,
        rate=rate,
        message=message,
        actor=call.actor,
        progress=watcher(call),
    )
    seconds = time.perf_counter() - started
    lines = columns([(name, str(count)) for name, count in sorted(found.nodes.items())])
    lines.append(
        f"{found.total} nodes, {found.stale} of them stale; {found.asked} texts embedded in "
        f"{seconds:.1f} s; {len(found.commits)} commits"
    )
    return Result(found.to_json() | {"seconds": round(seconds, 3)}, lines)
