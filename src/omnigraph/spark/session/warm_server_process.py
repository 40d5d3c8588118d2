"""The process of the warm server, started with ``-m`` and its idle time in seconds.

A Spark session that also answers Spark Connect, on the loopback interface and to those who know the
token. It ends when it was told to, when it did nothing for so long, or when another server took
its place.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
from time import monotonic
from typing import Any, Final

from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.spark_session import session, stop

POLL_S: Final = 1.0
PROGRESS_INTERVAL: Final = "200ms"  # often enough for a bar that a person watches
TOKEN_BYTES: Final = 32
TOKEN_VARIABLE: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


def main(idle_s: float) -> None:
    over = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: over.set())
    port, token = _free_port(), secrets.token_urlsafe(TOKEN_BYTES)
    # By the environment: what is given as an argument can be read by everybody on the machine.
    os.environ[TOKEN_VARIABLE] = token
    spark = session(
        settings={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.progress.reportInterval": PROGRESS_INTERVAL,
        }
    )
    try:
        server.publish(server.describe(port, token, idle_s))
        _serve(spark, idle_s, over)
    finally:
        server.withdraw()
        stop()


def _serve(spark: Any, idle_s: float, over: threading.Event) -> None:
    """Wait until nobody needs the server any more."""
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
