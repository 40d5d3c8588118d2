"""``omnigraph spark``: the warm server of this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.frame import Call, command, group
from omnigraph.cli.output import Result
from omnigraph.cli.scope import local_verb
from omnigraph.spark.session import warm_server as server

app = group("Keep Spark running, so that bulk commands start at once.")


@command(app, local_verb("spark start"))
def start(
    call: Call,
    idle: Annotated[
        float,
        typer.Option("--idle", metavar="MINUTES", min=0.01, help="End after so long without work."),
    ] = 30.0,
) -> Result:
    """Start Spark on this machine; bulk commands use it while it runs."""
    found, fresh = server.start(idle * 60)
    said = "started" if fresh else "is running already"
    line = f"Spark {said}: process {found.owner.pid}, port {found.port} of this machine"
    return Result({**found.to_json(), "started": fresh}, [line])


@command(app, local_verb("spark stop"))
def stop(call: Call) -> Result:
    """End it."""
    ended = server.stop()
    return Result({"stopped": ended}, ["stopped" if ended else "it was not running"])


@command(app, local_verb("spark status"))
def status(call: Call) -> Result:
    """Say whether it runs."""
    found = server.running()
    if found is None:
        return Result({"running": False}, ["not running"])
    shown = found.to_json()
    minutes = f"{shown['uptime_seconds'] / 60:.1f} min, ends after {found.idle_s / 60:g} idle"
    line = f"running: process {found.owner.pid}, port {found.port}, for {minutes}"
    return Result(shown, [line])
