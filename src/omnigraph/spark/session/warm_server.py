"""The warm server: Spark kept running on this machine, so that bulk commands start at once.

A server is a Spark Connect server on the loopback interface, in a process of its own
(``server_process``). Where it is and the token it asks for stand in a file that only its owner can
read. A file whose process is gone, or that another version of the program wrote, counts for
nothing. Whoever asks for a session without naming a master is given the server if there is one.
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
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.errors import SparkUnavailable
from omnigraph.spark.session.installed import PACKAGE_ROOT, require_pyspark
from omnigraph.spark.session.java import cache_places
from omnigraph.transaction.ownership import Owner, is_certainly_dead, this_process

USE_VARIABLE: Final = "OMNIGRAPH_SPARK_SERVER"
IDLE_S_DEFAULT: Final = 1_800.0
"""Half an hour: as long as somebody works with a graph, not as long as the machine runs."""

START_S_MAX: Final = 180.0  # Java on a busy machine
STOP_S_MAX: Final = 20.0
REACH_S_MAX: Final = 1.0  # a port of this machine answers at once or not at all
POLL_S: Final = 0.05
FILE: Final = "server.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, as its file describes it."""

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
        """What may be shown: everything but the token."""
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
        return not is_certainly_dead(self.owner) and _answers(self.port)


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether sessions may be those of the server."""
    return environ.get(USE_VARIABLE, "auto") != "off"


def running() -> Server | None:
    """The server of this user and this version, if one runs."""
    found = _published()
    if found is None:
        return None
    same = (found.version, found.package) == (_version(), PACKAGE_ROOT)
    return found if same and found.is_alive else None


def start(idle_s: float = IDLE_S_DEFAULT) -> tuple[Server, bool]:
    """The server, and whether it was started now."""
    require_pyspark()
    found = running()
    if found is not None:
        return found, False
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        environ = {**os.environ, USE_VARIABLE: "off"}
        environ.pop("SPARK_REMOTE", None)
        environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (PACKAGE_ROOT, os.environ.get("PYTHONPATH")))
        )
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "omnigraph.spark.session.warm_server_process", str(idle_s)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environ,
                cwd="/",
                start_new_session=True,  # it outlives the terminal it was started from
            )
        return _awaited(process, log), True


def _awaited(process: subprocess.Popen[bytes], log: Path) -> Server:
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        found = running()
        if found is not None:
            return found
        if process.poll() is not None:
            break
        time.sleep(POLL_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raise SparkUnavailable(
        f"the Spark server did not start: {(said or ['no reason given'])[-1][:300]}",
        remedy="Check the Java installation (JAVA_HOME) and the memory of this machine.",
    )


def stop() -> bool:
    """End the server; whether there was one."""
    path, found = folder() / FILE, _published()
    if found is None or is_certainly_dead(found.owner):
        path.unlink(missing_ok=True)
        return False
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.owner.pid, sign)
        deadline = time.monotonic() + STOP_S_MAX
        while not is_certainly_dead(found.owner) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if is_certainly_dead(found.owner):
            break
    path.unlink(missing_ok=True)
    return True


def publish(server: Server) -> None:
    """Say where the server is, to this user alone; whole or not at all."""
    place = folder()
    handle, temporary = tempfile.mkstemp(dir=place)
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(server), file)
    os.replace(temporary, place / FILE)


def describe(port: int, token: str, idle_s: float) -> Server:
    """This process as a server."""
    owner = this_process()
    return Server(owner, port, token, _version(), PACKAGE_ROOT, time.time(), idle_s)


def withdraw() -> None:
    """Take back what this process has published: it ends."""
    found = _published()
    if found is not None and found.owner == this_process():
        (folder() / FILE).unlink(missing_ok=True)


def _published() -> Server | None:
    """The server that the file names, alive or not; a file that makes no sense names none."""
    try:
        body = json.loads((folder() / FILE).read_text())
        return Server(**{**body, "owner": Owner(**body["owner"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def folder() -> Path:
    """A directory of this user alone."""
    for place in cache_places(os.environ, "spark"):
        try:
            place.mkdir(parents=True, exist_ok=True)
            os.chmod(place, 0o700)
            return place
        except OSError:
            continue
    raise SparkUnavailable("the Spark server needs a cache directory that can be written to")


def _version() -> str:
    return importlib.metadata.version("omnigraph")


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), REACH_S_MAX):
            return True
    except OSError:
        return False
