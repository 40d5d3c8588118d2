"""Spans: one per request, a child of the caller's, named after the route."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from omnigraph import ServerSettings, Settings
from omnigraph.server.asgi import create_app
from omnigraph.server.config import ServerConfig
from omnigraph.server.registry import GraphAddress
from tests.graphs import people_graph

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What is traced; the server configures the logs of its process, which are put back."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    root.handlers = handlers
    root.setLevel(level)
    logging.getLogger("omnigraph").setLevel(logging.NOTSET)
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)


def test_a_request_is_a_span(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    """In this process, so that the test can read the spans; any ASGI server could call it."""
    graph = people_graph(tmp_path / "g")
    settings = Settings(server=ServerSettings(unauthenticated=True, log_level="error"))
    app = create_app(ServerConfig((GraphAddress("g", graph.uri),), settings))
    app.start()

    async def ask() -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            body = {"query": "query q() { match { $p: Person } return { $p.name } }"}
            headers = {"traceparent": PARENT}
            return (await client.post("/graphs/g/query", json=body, headers=headers)).status_code

    assert asyncio.run(ask()) == 200
    app.services.close()
    (span,) = spans.get_finished_spans()
    assert span.name == "POST /graphs/{graph_id}/query"
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 200
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
