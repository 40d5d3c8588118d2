"""``omnigraph embed``: computes the vectors of ``@embed`` properties."""

from __future__ import annotations

import time
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, MasterOption, MessageOption, UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns
from omnigraph.cli.progress import watcher

app = single("Compute embeddings.")


@command(app, data_verb("embed"))
def embed(
    call: Invocation,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type. May be repeated."),
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", help="Compute all vectors again.")
    ] = False,
    commit_every: Annotated[
        int | None,
        typer.Option(
            "--commit-every",
            metavar="N",
            min=1,
            help="Make a commit after this many nodes, instead of one at the end.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, help="Texts per request.")
    ] = 64,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", help="The most requests per second.", show_default=False
        ),
    ] = None,
    message: MessageOption = None,
    master: MasterOption = None,
) -> CommandResult:
    """Compute the vectors of @embed properties that are missing or whose text has changed.

    The provider is named by OMNIGRAPH_EMBED_PROVIDER. The next run resumes an interrupted one.
    """
    location = call.address(uri)
    call.echo(location)
    settings = call.settings.with_master(master)
    started = time.perf_counter()
    found = omnigraph.open(location.uri, settings=settings).spark.embed(
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
    return CommandResult(found.to_json() | {"seconds": round(seconds, 3)}, lines)
