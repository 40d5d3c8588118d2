"""Environment variables of the processes that Spark starts: Java, PySpark workers, the warm server.

Other programs read these variables, so they have to be set. Omnigraph's own settings are passed to
those processes as values (``omnigraph.settings``).
"""

from __future__ import annotations

import os
import sys
from typing import Final

from omnigraph.settings import Settings
from omnigraph.spark.session.installed import PACKAGE_ROOT

LANCE_LOG: Final = "LANCE_LOG"
CONNECT_TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


def prepare_for_java(java_home: str, *, is_local: bool) -> None:
    """Set the environment that the Java process inherits."""
    os.environ.setdefault(LANCE_LOG, "error")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["JAVA_HOME"] = java_home


def executor_environment() -> dict[str, str]:
    """The variables of executors: where this package is, and how much Lance logs."""
    return {
        "PYTHONPATH": _python_path(),
        LANCE_LOG: os.environ.get(LANCE_LOG, "error"),
    }


def server_environment(settings: Settings) -> dict[str, str]:
    """The variables of the warm server: those of this process, but Spark in its own process."""
    environment = {
        **os.environ,
        "OMNIGRAPH_SPARK_SERVER": "off",
        "OMNIGRAPH_CACHE_DIR": str(settings.cache.root),
        "PYTHONPATH": _python_path(),
    }
    environment.pop("SPARK_REMOTE", None)
    return environment


def require_token(token: str) -> None:
    """Set the token that the Spark Connect server of this process requires.

    In the environment, because every user of the machine can read the arguments of a process.
    """
    os.environ[CONNECT_TOKEN] = token


def _python_path() -> str:
    return os.pathsep.join(filter(None, (PACKAGE_ROOT, os.environ.get("PYTHONPATH"))))
