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
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnigraph.bulk.estimate import SparkAtHand
from omnigraph.errors import SparkUnavailable
from omnigraph.model.cores import cores
from omnigraph.settings import Settings
from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.installed import is_available, require_pyspark
from omnigraph.spark.session.java import find_java_home
from omnigraph.spark.session.process_environment import executor_environment, prepare_for_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_FAILURES_MAX: Final = 4
"""Part of the local master URL: Spark ignores spark.task.maxFailures in local mode."""

MEMORY_SHARE: Final = 4
MEMORY_MB: Final = (1_024, 8_192)
"""Java heap: a quarter of the machine's memory, within these bounds; a load needs little of it."""

JAVA_OPTIONS: Final = "-XX:+UseParallelGC -XX:GCTimeRatio=9"
"""The fastest collector for these jobs, set to collect before growing the heap: otherwise Java
keeps gigabytes after the first large job and is hardly faster."""

SHUFFLE_PARTITIONS_PER_CORE: Final = 4

START_S: Final = 20.0
"""Seconds until a new session runs its first task: Java, the session, imports of the workers."""

CONNECT_S: Final = 1.0
"""The same for a session of a running server."""

CLUSTER_CORES: Final = 16
"""Cores of a cluster that was not asked yet; used to choose an engine only."""

_lock = threading.Lock()
_own: SparkSession | None = None
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
        return SparkAtHand(parallelism(running), 0.0, not _runs_here(running))
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
    return _runs_here(spark)


def _runs_here(spark: SparkSession) -> bool:
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
    named = master or settings.spark.master
    if named is None and not conf:
        warm = _warm_server(settings)
        if warm is not None:
            return warm
    chosen = named or f"local[{cores()},{TASK_FAILURES_MAX}]"
    prepare_for_java(find_java_home(settings), is_local=chosen.startswith("local"))
    builder = SparkSession.builder.master(chosen).appName("omnigraph")
    for name, value in {**_defaults(), **conf}.items():
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
    """Silence PySpark's warnings about the pandas version, and its JSON log of failed queries.

    A failure becomes one typed error.
    """
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", ".*fully support pandas", FutureWarning)


def _defaults() -> dict[str, str]:
    low, high = MEMORY_MB
    memory_mb = min(max(_memory_mb() // MEMORY_SHARE, low), high)
    return {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.caseSensitive": "true",  # names of the schema are case-sensitive
        "spark.sql.shuffle.partitions": str(cores() * SHUFFLE_PARTITIONS_PER_CORE),
        **{f"spark.executorEnv.{name}": value for name, value in executor_environment().items()},
    }


def _memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def _is_stopped(spark: Any) -> bool:
    if is_connect(spark):
        return bool(spark.is_stopped)
    return spark.sparkContext._jsc is None


def _log_file() -> Path:
    """A log file for the output of Java, removed when this process ends."""
    handle, name = tempfile.mkstemp(prefix="omnigraph-spark-", suffix=".log")
    os.close(handle)
    path = Path(name)
    atexit.register(lambda: path.unlink(missing_ok=True))
    return path


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
        clues = [line.strip() for line in lines if "rror" in line or "xception" in line]
        why = (clues or said or [type(problem).__name__])[0][:300]
        raise SparkUnavailable(
            f"{doing} failed: {why}",
            remedy="Check the Java installation (JAVA_HOME), the master's address and the memory.",
        ) from problem
