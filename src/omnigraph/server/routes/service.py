"""The server itself: health, readiness, metrics, the OpenAPI document, the graphs it serves."""

from __future__ import annotations

from typing import Any, Final

from omnigraph import __version__
from omnigraph.engine.cache.memory_cache import shared_cache
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import Answer, Headers, encoded, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.openapi import API_VERSION
from omnigraph.server.http.operation import Operation, Success
from omnigraph.server.http.shapes import GraphList, Health, Readiness
from omnigraph.server.metrics import MEDIA
from omnigraph.server.registry import ServedGraph

COMPATIBLE_SCHEMA_VERSION: Final = 6
"""What clients of the API expect to read; our own storage format has a number of its own."""
_NOT_STORED: Final[Headers] = (("cache-control", "no-store"),)
_HEALTH: Final = encoded(
    {
        "status": "ok",
        "version": API_VERSION,
        "internal_schema_version": COMPATIBLE_SCHEMA_VERSION,
        "implementation": {"name": "omnigraph-python", "version": __version__},
    }
)


async def health(call: Exchange) -> Answer:
    return Answer(_HEALTH, headers=_NOT_STORED)


async def ready(call: Exchange) -> Answer:
    services = call.services
    graphs = services.registry.all()
    working = sum(item.state == "ready" for item in graphs)
    if services.stopping:
        status = "draining"
    elif graphs and not working:
        status = "blocked"
    else:
        status = "serving" if working == len(graphs) else "degraded"
    is_ready = status in ("serving", "degraded")
    body = {
        "ready": is_ready,
        "status": status,
        "served_graph_count": len(graphs),
        "ready_graph_count": working,
        "loading_graph_count": 0,
        "blocked_graph_count": len(graphs) - working,
        "shutdown_grace_seconds": services.settings.shutdown_grace_s,
    }
    return json_answer(body, status=200 if is_ready else 503, headers=_NOT_STORED)


async def metrics(call: Exchange) -> Answer:
    services = call.services
    found = services.metrics
    for pool in (services.reads, services.writes):
        found.queue.labels(pool.name).set(pool.busy)
    found.writes.set(services.admission.inflight)
    found.cache_bytes.set(shared_cache(services.all_settings.cache.memory_bytes).nbytes)
    return Answer(await services.reads.run(found.text), media=MEDIA)


async def graphs(call: Exchange) -> Answer:
    call.allow(GraphAction.GRAPH_LIST)
    return json_answer({"graphs": [_listed(item) for item in call.services.registry.all()]})


def _listed(item: ServedGraph) -> dict[str, Any]:
    works = item.state == "ready"
    body: dict[str, Any] = {
        "graph_id": item.id,
        "uri": item.uri,
        "state": item.state,
        "read_available": works,
        "write_available": works,
    }
    if item.failure is not None:
        body["failure"] = item.failure
    return body


OPERATIONS: Final = (
    Operation(
        "GET",
        "/healthz",
        "health",
        "health",
        "Whether the process answers.",
        health,
        None,
        {200: Success("It does.", Health)},
    ),
    Operation(
        "HEAD",
        "/healthz",
        "headHealth",
        "health",
        "The same without a body: clients send it to learn the version of the API.",
        health,
        None,
        {200: Success("It does.")},
    ),
    Operation(
        "GET",
        "/readyz",
        "ready",
        "health",
        "Whether requests should be sent here.",
        ready,
        None,
        {200: Success("They should.", Readiness), 503: Success("Not now.", Readiness)},
    ),
    Operation(
        "GET",
        "/metrics",
        "metrics",
        "health",
        "Metrics in the text format of Prometheus.",
        metrics,
        None,
        {200: Success("The metrics of all workers.", media=("text/plain",))},
    ),
    Operation(
        "GET",
        "/graphs",
        "listGraphs",
        "management",
        "The graphs that the server serves.",
        graphs,
        GraphAction.GRAPH_LIST,
        {200: Success("In order of ids.", GraphList)},
    ),
)
