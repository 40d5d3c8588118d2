"""The warm server: a running Spark on this machine, so that bulk commands start at once.

It is a Spark Connect server on the loopback interface, in a process of its own
(``warm_server_process``). Its port and token are in a file that only its owner can read. A file of
a dead process, or of another version of the package, is ignored. A session without a master uses
the server if it runs.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.errors import SparkUnavailable
from omnigraph.model.retry import poll_policy, wait_until
from omnigraph.settings import Settings
from omnigraph.spark.session.installed import PACKAGE_ROOT, require_pyspark
from omnigraph.spark.session.java import cache_directories
from omnigraph.spark.session.process_environment import server_environment
from omnigraph.transaction.ownership import Owner, is_certainly_dead, this_process

IDLE_S_DEFAULT: Final = 1_800.0
"""Idle time after which the server stops: half an hour."""

START_POLL: Final = poll_policy(0.05, 180.0, jitter=0.0)  # Java on a busy machine
STOP_POLL: Final = poll_policy(0.05, 20.0, jitter=0.0)
REACH_S_MAX: Final = 1.0  # a local port accepts at once or never
FILE: Final = "server.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A server, as described by its file."""

    owner: Owner
    port: int
    token: str
    version: str
    package: str
    started_at: float
    idle_s: float

    @property
    def url(self) -> str:
        return f"sc://localhost:{self.port}/;token={self.token}"

    def to_json(self) -> dict[str, Any]:
        """The public fields: everything but the token."""
        return {
            "running": True,
            "pid": self.owner.pid,
            "port": self.port,
            "version": self.version,
            "uptime_seconds": round(time.time() - self.started_at, 1),
            "idle_seconds_max": self.idle_s,
        }

    @property
    def is_alive(self) -> bool:
        return not is_certainly_dead(self.owner) and _accepts_connections(self.port)


def running(settings: Settings) -> Server | None:
    """The server of this user and this version, if one runs."""
    found = _published(settings)
    if found is None:
        return None
    same = (found.version, found.package) == (_version(), PACKAGE_ROOT)
    return found if same and found.is_alive else None


def start(settings: Settings, idle_s: float = IDLE_S_DEFAULT) -> tuple[Server, bool]:
    """The running server, or a new one; and whether it was started now."""
    require_pyspark()
    found = running(settings)
    if found is not None:
        return found, False
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "omnigraph.spark.session.warm_server_process", str(idle_s)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=server_environment(settings),
                cwd="/",
                start_new_session=True,  # it outlives the terminal it was started from
            )
        return _awaited(settings, process, log), True


def _awaited(settings: Settings, process: subprocess.Popen[bytes], log: Path) -> Server:
    retry = START_POLL.start()
    while True:
        found = running(settings)
        if found is not None:
            return found
        if process.poll() is not None or not retry.again():
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raise SparkUnavailable(
        f"the Spark server did not start: {(said or ['no reason given'])[-1][:300]}",
        remedy="Check the Java installation (JAVA_HOME) and the memory of this machine.",
    )


def stop(settings: Settings) -> bool:
    """Stop the server; returns whether one was running."""
    path, found = folder(settings) / FILE, _published(settings)
    if found is None or is_certainly_dead(found.owner):
        path.unlink(missing_ok=True)
        return False
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.owner.pid, sign)
        if wait_until(lambda: is_certainly_dead(found.owner), STOP_POLL):
            break
    path.unlink(missing_ok=True)
    return True


def publish(settings: Settings, server: Server) -> None:
    """Write the server's file atomically, readable by this user alone."""
    place = folder(settings)
    handle, temporary = tempfile.mkstemp(dir=place)
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(server), file)
    os.replace(temporary, place / FILE)


def describe(port: int, token: str, idle_s: float) -> Server:
    """A description of this process as a server."""
    owner = this_process()
    return Server(owner, port, token, _version(), PACKAGE_ROOT, time.time(), idle_s)


def withdraw(settings: Settings) -> None:
    """Remove the file of this process, which is about to end."""
    found = _published(settings)
    if found is not None and found.owner == this_process():
        (folder(settings) / FILE).unlink(missing_ok=True)


def _published(settings: Settings) -> Server | None:
    """The server described by the file, alive or not; None for a missing or invalid file."""
    try:
        body = json.loads((folder(settings) / FILE).read_text())
        return Server(**{**body, "owner": Owner(**body["owner"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def folder(settings: Settings) -> Path:
    """A directory that only this user can read."""
    for place in cache_directories(settings, "spark"):
        try:
            place.mkdir(parents=True, exist_ok=True)
            os.chmod(place, 0o700)
            return place
        except OSError:
            continue
    raise SparkUnavailable("the Spark server needs a writable cache directory")


def _version() -> str:
    return importlib.metadata.version("omnigraph")


def _accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), REACH_S_MAX):
            return True
    except OSError:
        return False
