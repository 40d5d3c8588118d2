"""``omnigraph spark``: the warm Spark server of this machine, and the package for executors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.addressing import local_verb
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult
from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.package import build_package

app = group("Keep Spark running, so that bulk commands start at once.")


@command(app, local_verb("spark start"))
def start(
    call: Invocation,
    idle: Annotated[
        float,
        typer.Option(
            "--idle", metavar="MINUTES", min=0.01, help="End after this time without work."
        ),
    ] = 30.0,
) -> CommandResult:
    """Start Spark on this machine; bulk commands use it while it runs."""
    found, fresh = server.start(call.settings, idle * 60)
    said = "started" if fresh else "is running already"
    line = f"Spark {said}: process {found.owner.pid}, port {found.port} of this machine"
    return CommandResult({**found.to_json(), "started": fresh}, [line])


@command(app, local_verb("spark stop"))
def stop(call: Invocation) -> CommandResult:
    """Stop the warm server."""
    ended = server.stop(call.settings)
    return CommandResult({"stopped": ended}, ["stopped" if ended else "it was not running"])


@command(app, local_verb("spark status"))
def status(call: Invocation) -> CommandResult:
    """Show whether the warm server runs."""
    found = server.running(call.settings)
    if found is None:
        return CommandResult({"running": False}, ["not running"])
    shown = found.to_json()
    minutes = f"{shown['uptime_seconds'] / 60:.1f} min, ends after {found.idle_s / 60:g} idle"
    line = f"running: process {found.owner.pid}, port {found.port}, for {minutes}"
    return CommandResult(shown, [line])


@command(app, local_verb("spark package"))
def package(
    call: Invocation,
    target: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The archive to write: a .zip file."),
    ],
) -> CommandResult:
    """Write the archive of Omnigraph that executors without it are sent."""
    files = build_package(target)
    line = f"{target}: {files} files; set OMNIGRAPH_SPARK_PACKAGE={target}"
    return CommandResult({"package": str(target), "files": files}, [line])
