"""The Spark session: the caller's own, a cluster's, a server's, or one made for this machine.

Whoever has an active session keeps it. Otherwise ``SPARK_REMOTE`` names a Spark Connect server and
``OMNIGRAPH_SPARK_MASTER`` a cluster; without either, the warm server of this machine is used if it
runs, and if not, Spark runs inside this process, sized to the machine. Starting is quiet: what the
Java side says goes to a log file, which is read only to explain a failure.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import SparkUnavailable
from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.installed import PACKAGE_ROOT, require_pyspark
from omnigraph.spark.session.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE: Final = "OMNIGRAPH_SPARK_MASTER"
TASK_FAILURES_MAX: Final = 4
"""Spark ignores spark.task.maxFailures in local mode: it must stand in the master itself."""

MEMORY_SHARE: Final = 4
MEMORY_MB: Final = (1_024, 8_192)
"""The Java side of a load holds little: a quarter of the machine's memory, within these bounds."""

JAVA_OPTIONS: Final = "-XX:+UseParallelGC -XX:GCTimeRatio=9"
"""The quickest collector for this, told to collect before it takes more memory: without that Java
holds gigabytes after the first large job and is hardly quicker."""

SHUFFLE_PARTITIONS_PER_CORE: Final = 4

_lock = threading.Lock()
_own: SparkSession | None = None
_is_warm = False  # whether that is a session of the server on this machine


def session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session to work in. ``settings`` count only when a session is started here."""
    global _own
    require_pyspark()
    from pyspark.sql import SparkSession

    with _lock:
        active = SparkSession.getActiveSession()
        if active is not None and master is None:
            return active
        if _own is None or _is_stopped(_own):
            _own = _started(master, settings or {})
            atexit.register(stop)
        return _own


def stop() -> None:
    """Stop the session that was started here, if there is one."""
    global _own
    with _lock:
        if _own is not None and not _is_stopped(_own):
            with contextlib.suppress(Exception):  # a dead cluster must not keep a program alive
                _own.stop()
        _own = None


def is_connect(spark: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server, which has no contexts and no RDDs."""
    return "pyspark.sql.connect" in type(spark).__module__


def runs_here(tasks: Any) -> bool:
    """Whether the executors of these tasks are on this machine and see its files."""
    spark = getattr(tasks, "spark", None)
    if spark is None:
        return True
    if is_connect(spark):
        return spark is _own and _is_warm
    return bool(spark.sparkContext.master.startswith("local"))


def parallelism(spark: SparkSession) -> int:
    """How many tasks can run at once, as far as Spark tells."""
    if is_connect(spark):
        return int(spark.conf.get("spark.default.parallelism", "0") or 0) or os.cpu_count() or 2
    return int(spark.sparkContext.defaultParallelism)


def _started(master: str | None, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    remote = os.environ.get("SPARK_REMOTE")
    if master is None and remote:
        return _connected(remote, "the Spark Connect server")
    named = master or os.environ.get(MASTER_VARIABLE)
    if named is None and not settings:
        warm = _warm_server()
        if warm is not None:
            return warm
    chosen = named or f"local[{_cores()},{TASK_FAILURES_MAX}]"
    os.environ.setdefault("LANCE_LOG", "error")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if chosen.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java_home = find_java_home(os.environ)
    if java_home is not None:
        os.environ["JAVA_HOME"] = java_home
    builder = SparkSession.builder.master(chosen).appName("omnigraph")
    for name, value in {**_defaults(), **settings}.items():
        builder = builder.config(name, value)
    _quieten_python()
    log = _log_file()
    with _explained("starting Spark", log), _quiet(log):
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def _connected(url: str, what: str) -> SparkSession:
    from pyspark.sql import SparkSession

    _quieten_python()
    with _explained(f"connecting to {what}", None):
        return SparkSession.builder.remote(url).getOrCreate()


def _warm_server() -> SparkSession | None:
    """A session of the server that this user keeps running; None when there is none."""
    global _is_warm
    found = server.running() if server.wanted(os.environ) else None
    if found is None:
        return None
    spark = _connected(found.url, "the warm Spark server")
    _is_warm = True
    return spark


def _quieten_python() -> None:
    """PySpark warns about every pandas it was not released with; what is used here is tested.

    It also logs every failed query as JSON: here a failure becomes one typed error.
    """
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", ".*fully support pandas", FutureWarning)


def _defaults() -> dict[str, str]:
    low, high = MEMORY_MB
    memory_mb = min(max(_memory_mb() // MEMORY_SHARE, low), high)
    path = os.pathsep.join(filter(None, (PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))
    return {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executorEnv.PYTHONPATH": path,
        "spark.executorEnv.LANCE_LOG": os.environ.get("LANCE_LOG", "error"),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.caseSensitive": "true",  # as names of the schema are
        "spark.sql.shuffle.partitions": str(_cores() * SHUFFLE_PARTITIONS_PER_CORE),
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2


def _memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def _is_stopped(spark: Any) -> bool:
    if is_connect(spark):
        return bool(spark.is_stopped)
    return spark.sparkContext._jsc is None


def _log_file() -> Path:
    """Where the Java side writes; gone when this process ends."""
    handle, name = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    os.close(handle)
    path = Path(name)
    atexit.register(lambda: path.unlink(missing_ok=True))
    return path


@contextlib.contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """Let what is started now inherit the log as its standard error."""
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


@contextlib.contextmanager
def _explained(doing: str, log: Path | None) -> Iterator[None]:
    """Any failure to get a session as one line that says what to do."""
    try:
        yield
    except SparkUnavailable:
        raise
    except Exception as problem:  # whatever PySpark, its gateway or gRPC raise
        said = str(problem).strip().splitlines()
        lines = log.read_text(errors="replace").splitlines() if log is not None else []
        clues = [line.strip() for line in lines if "rror" in line or "xception" in line]
        why = (clues or said or [type(problem).__name__])[0][:300]
        raise SparkUnavailable(
            f"{doing} failed: {why}",
            remedy="Check the Java installation (JAVA_HOME), the master's address and the memory.",
        ) from problem
