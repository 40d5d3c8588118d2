"""The process of the warm server, started with ``-m`` and its idle time in seconds.

A Spark session with a Spark Connect endpoint on the loopback interface, protected by a token. It
ends on SIGTERM or SIGINT, or when it ran no job for the idle time.
"""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import threading
from time import monotonic
from typing import Any, Final

from omnigraph.settings import Settings
from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.process_environment import require_token
from omnigraph.spark.session.spark_session import session, stop

POLL_S: Final = 1.0
PROGRESS_INTERVAL: Final = "200ms"  # for a progress bar
TOKEN_BYTES: Final = 32


def main(idle_s: float) -> None:
    over = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: over.set())
    port, token = _free_port(), secrets.token_urlsafe(TOKEN_BYTES)
    require_token(token)
    settings = Settings.from_environment()
    spark = session(
        settings=settings,
        conf={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.progress.reportInterval": PROGRESS_INTERVAL,
        },
    )
    try:
        server.publish(settings, server.describe(port, token, idle_s))
        _serve(spark, idle_s, over)
    finally:
        server.withdraw(settings)
        stop()


def _serve(spark: Any, idle_s: float, over: threading.Event) -> None:
    """Wait for a signal, or until no job ran for ``idle_s``."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    tracker = spark.sparkContext.statusTracker()
    seen, since = 0, monotonic()
    while not over.wait(POLL_S):
        jobs = scheduler.numTotalJobs()
        if jobs != seen or tracker.getActiveJobsIds():
            seen, since = jobs, monotonic()
        if monotonic() - since > idle_s:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main(float(sys.argv[1]))
