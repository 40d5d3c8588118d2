"""A real Spark cluster on this machine: a master and workers as processes of their own.

Started from the installed PySpark, on loopback and on free ports; everything it writes lies in one
directory. Workers can be killed with everything they started, as a machine that loses power.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from omnigraph.settings import Settings
from omnigraph.spark.session.java import find_java_home

START_S_MAX = 120.0  # a Java machine on a busy computer
POLL_S = 0.1


@dataclass
class SparkCluster:
    """A running master and its workers."""

    folder: Path
    master: subprocess.Popen[bytes]
    url: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, *, cores: int = 1, memory_mb: int = 1_024) -> subprocess.Popen[bytes]:
        """Start a worker and wait until the master has it."""
        number = len(self.workers)
        directory = self.folder / f"worker{number}"
        arguments = ["--cores", str(cores), "--memory", f"{memory_mb}M", "--host", "127.0.0.1"]
        arguments += ["--port", "0", "--webui-port", "0", "--work-dir", str(directory), self.url]
        log = self.folder / f"worker{number}.log"
        worker = _start("worker.Worker", arguments, log)
        self.workers.append(worker)
        _wait(lambda: "Successfully registered" in _text(log), worker, log)
        return worker

    def kill_worker(self, number: int) -> None:
        """Kill a worker, its executors and their Python processes at once."""
        _kill_all(self.workers[number])

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            _kill_all(process)


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster that is gone when the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "master.log"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = _start("master.Master", arguments, log)
    found: list[str] = []

    def is_up() -> bool:
        found.extend(re.findall(r"spark://127\.0\.0\.1:\d+", _text(log)))
        return bool(found)

    try:
        _wait(is_up, master, log)
        cluster = SparkCluster(folder, master, found[0])
        try:
            for _ in range(workers):
                cluster.add_worker()
            yield cluster
        finally:
            cluster.stop()
    finally:
        _kill_all(master)


def _start(role: str, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    environ = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    environ["PYSPARK_PYTHON"] = sys.executable
    environ["JAVA_HOME"] = find_java_home(Settings.from_environment())
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", *arguments],
            stdout=out,
            stderr=out,
            env=environ,
            start_new_session=True,  # a group of its own, to be killed as a whole
        )


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all its descendants, also those in groups of their own."""
    try:
        family = [psutil.Process(process.pid)]
        family += family[0].children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    for member in family:
        try:
            member.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    process.wait()


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S_MAX
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"a part of the cluster did not start: {_text(log)[-2000:]}")
        time.sleep(POLL_S)


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
