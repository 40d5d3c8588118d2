"""Metrics for Prometheus, of one worker or of all.

With several workers prometheus-client keeps the values in files that the workers share; then the
scrape of any worker has the sums.
"""

from __future__ import annotations

from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MutexValue, ValueClass

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
MEDIA: Final = CONTENT_TYPE_LATEST


class Metrics:
    """What a server counts."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter(
            "omnigraph_http_requests",
            "Requests by method, route and status",
            ["method", "route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "omnigraph_http_request_seconds",
            "Time from the first byte of a request to the last of its answer",
            ["method", "route"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        self.commits = Counter(
            "omnigraph_commits", "Commits made, by graph", ["graph"], registry=registry
        )
        self.conflicts = Counter(
            "omnigraph_conflicts",
            "Writes refused because of a conflict, by graph and reason",
            ["graph", "reason"],
            registry=registry,
        )
        self.recoveries = Counter(
            "omnigraph_recoveries",
            "Unfinished writes of dead processes that were resolved, by graph",
            ["graph"],
            registry=registry,
        )
        self.queue = Gauge(
            "omnigraph_engine_calls",
            "Calls of the engine that run or wait, by pool",
            ["pool"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.cache_bytes = Gauge(
            "omnigraph_engine_cache_bytes",
            "Bytes of the read cache",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.writes = Gauge(
            "omnigraph_writes_in_flight",
            "Writes that were admitted and have not finished",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._requests: dict[tuple[str, str, int], Any] = {}
        self._seconds: dict[tuple[str, str], Any] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request. The labelled children are kept: looking them up takes a lock."""
        counter = self._requests.get((method, route, status))
        if counter is None:
            counter = self.requests.labels(method, route, str(status))
            self._requests[method, route, status] = counter
        histogram = self._seconds.get((method, route))
        if histogram is None:
            histogram = self.seconds.labels(method, route)
            self._seconds[method, route] = histogram
        counter.inc()
        histogram.observe(seconds)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        if ValueClass is not MutexValue:  # prometheus-client found the workers' directory
            shared = CollectorRegistry()
            MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
            return bytes(generate_latest(shared))
        return bytes(generate_latest(self._registry))
