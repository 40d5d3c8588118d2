"""Choosing and starting the Spark session.

An active session is used if there is one. Otherwise ``SPARK_REMOTE`` names a Spark Connect server
and ``OMNIGRAPH_SPARK_MASTER`` a cluster; without either, the warm server of this machine is used if
it runs, else Spark starts in local mode, sized to the machine. The output of Java goes to a log
file, which is read only to explain a failure.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph.bulk.estimate import SparkAtHand
from omnigraph.errors import SparkUnavailable
from omnigraph.model.cores import cores
from omnigraph.settings import Settings
from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.installed import is_available, require_pyspark
from omnigraph.spark.session.java import find_java_home
from omnigraph.spark.session.process_environment import prepare_for_java
from omnigraph.spark.session.spark_conf import session_conf, user_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_FAILURES_MAX: Final = 4
"""Part of the local master URL: Spark ignores spark.task.maxFailures in local mode."""


START_S: Final = 20.0
"""Seconds until a new session runs its first task: Java, the session, imports of the workers."""

CONNECT_S: Final = 1.0
"""The same for a session of a running server."""

CLUSTER_CORES: Final = 16
"""Cores of a cluster that was not asked yet; used to choose an engine only."""

_lock = threading.Lock()
_own: SparkSession | None = None
_failed_logs: set[Path] = set()
_is_warm = False  # whether _own is a session of the warm server


def session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    settings: Settings | None = None,
) -> SparkSession:
    """The active session, or a new one.

    Args:
        master: A Spark master; if given, an active session is not used.
        conf: Spark configuration; used only when a session is started here.
        settings: Where Spark runs; read from the environment if not given.
    """
    global _own
    require_pyspark()
    from pyspark.sql import SparkSession

    with _lock:
        active = SparkSession.getActiveSession()
        if active is not None and master is None:
            return active
        if _own is None or _is_stopped(_own):
            chosen = Settings.from_environment() if settings is None else settings
            _own = _started(master, conf or {}, chosen)
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


def at_hand(settings: Settings) -> SparkAtHand | None:
    """The session that ``session`` would return, without starting one; None without PySpark."""
    if not is_available():
        return None
    running = _own if _own is not None and not _is_stopped(_own) else _active()
    if running is not None:
        return SparkAtHand(parallelism(running), 0.0, not runs_here(running))
    spark = settings.spark
    if spark.remote or (spark.master is not None and not spark.master.startswith("local")):
        return SparkAtHand(CLUSTER_CORES, CONNECT_S if spark.remote else START_S, True)
    warm = spark.server != "off" and spark.master is None and server.running(settings) is not None
    return SparkAtHand(cores(), CONNECT_S if warm else START_S, False)


def _active() -> SparkSession | None:
    """The session of the program that uses this library."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no SparkContext and no RDDs."""
    return "pyspark.sql.connect" in type(spark).__module__


def is_on_this_machine(tasks: Any) -> bool:
    """Whether the executors run on this machine and share its file system."""
    spark = getattr(tasks, "spark", None)
    if spark is None:
        return True
    return runs_here(spark)


def runs_here(spark: SparkSession) -> bool:
    """Whether the executors of a session run on this machine."""
    if is_connect(spark):
        return spark is _own and _is_warm
    return (spark.sparkContext.master or "").startswith("local")


def parallelism(spark: SparkSession) -> int:
    """How many tasks can run at once, as reported by Spark."""
    if is_connect(spark):
        return int(spark.conf.get("spark.default.parallelism", "0") or 0) or os.cpu_count() or 2
    return int(spark.sparkContext.defaultParallelism)


def _started(master: str | None, conf: Mapping[str, str], settings: Settings) -> SparkSession:
    from pyspark.sql import SparkSession

    if master is None and settings.spark.remote:
        return _connected(settings.spark.remote, "the Spark Connect server")
    user = user_conf(settings.spark)
    named = master or settings.spark.master or user.get("spark.master")
    if named is None and not conf:
        warm = _warm_server(settings)
        if warm is not None:
            return warm
    chosen = named or f"local[{cores()},{TASK_FAILURES_MAX}]"
    is_local = chosen.startswith("local")
    prepare_for_java(find_java_home(settings), is_local=is_local)
    builder = SparkSession.builder.master(chosen).appName("omnigraph")
    for name, value in session_conf(user, conf, is_local=is_local, cores=cores()).items():
        builder = builder.config(name, value)
    _quieten_python()
    log = _log_file()
    with _explained("starting Spark", log), _quiet(log), _own_interrupts():
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel(user.get("spark.log.level", "ERROR"))
    if settings.spark.package is not None and not is_local:
        spark.sparkContext.addPyFile(_existing(settings.spark.package))
    return spark


def _existing(package: str) -> str:
    if not os.path.isfile(package):
        raise SparkUnavailable(
            f"there is no package for executors at {package}",
            remedy="Build it: omnigraph spark package omnigraph.zip.",
        )
    return package


def _connected(url: str, what: str) -> SparkSession:
    from pyspark.sql import SparkSession

    _quieten_python()
    with _explained(f"connecting to {what}", None):
        return SparkSession.builder.remote(url).getOrCreate()


def _warm_server(settings: Settings) -> SparkSession | None:
    """A session of this user's warm server; None when none runs."""
    global _is_warm
    found = server.running(settings) if settings.spark.server != "off" else None
    if found is None:
        return None
    spark = _connected(found.url, "the warm Spark server")
    _is_warm = True
    return spark


def _quieten_python() -> None:
    """Silence PySpark's warnings about the pandas version, its JSON log of failed queries, and the
    tracebacks of calls to Java that an interrupt ends.

    A failure becomes one typed error.
    """
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)
    warnings.filterwarnings("ignore", ".*fully support pandas", FutureWarning)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Some records of the gateway to Java go to the root logger."""
    return "py4j" not in record.pathname


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of interrupts: that of PySpark calls Java in the middle of a call to Java.

    A job is cancelled by whoever waits for it.
    """
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if in_main else None
    yield
    if in_main and handler is not None:
        signal.signal(signal.SIGINT, handler)


def _is_stopped(spark: Any) -> bool:
    if is_connect(spark):
        return bool(spark.is_stopped)
    return spark.sparkContext._jsc is None


def _log_file() -> Path:
    """A log file for the output of Java, removed when this process ends, unless Spark failed."""
    handle, name = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    os.close(handle)
    path = Path(name)
    atexit.register(_remove_log, path)
    return path


def _remove_log(path: Path) -> None:
    if path not in _failed_logs:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _quiet(log: Path) -> Iterator[None]:
    """Redirect standard error to the log, for the Java process started inside."""
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
    """Turn any failure to get a session into ``SparkUnavailable`` with its cause."""
    try:
        yield
    except SparkUnavailable:
        raise
    except Exception as problem:  # whatever PySpark, its gateway or gRPC raise
        said = str(problem).strip().splitlines()
        lines = log.read_text(errors="replace").splitlines() if log is not None else []
        why = (cause_of_failure(lines) or (said or [type(problem).__name__])[0])[:300]
        kept = ""
        if log is not None:
            _failed_logs.add(log)
            kept = f" (Java's log: {log})"
        raise SparkUnavailable(
            f"{doing} failed: {why}{kept}",
            remedy="Check the Java installation (JAVA_HOME), the master's address and the memory.",
            details={"log": str(log)} if log is not None else None,
        ) from problem


def cause_of_failure(lines: Sequence[str]) -> str | None:
    """The line of Java's log that says why Spark did not start."""
    found = [line.strip() for line in lines if "Ignoring" not in line]
    for marks in (("Giving up", "Could not", "cannot"), ("Caused by:",), ("Exception",), ("rror",)):
        chosen = [line for line in found if any(mark in line for mark in marks)]
        if chosen:
            return chosen[0].removeprefix("Caused by:").strip()
    return None
