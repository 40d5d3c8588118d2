"""Traces: one span per request, through the OpenTelemetry API.

Without the API installed, or without an SDK that collects, a span costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from starlette.types import Scope

try:
    from opentelemetry import propagate, trace
except ImportError:  # an optional dependency
    _tracer: Any = None
else:
    _tracer = trace.get_tracer("omnigraph.server")


class RequestSpan(Protocol):
    """The span of a request."""

    def finish(self, route: str, status: int) -> None: ...


class _NoSpan:
    def finish(self, route: str, status: int) -> None:
        """Nothing is collected."""


NO_SPAN: Final = _NoSpan()


class _TracedRequest:
    def __init__(self, span: Any, method: str) -> None:
        self._span = span
        self._method = method

    def finish(self, route: str, status: int) -> None:
        self._span.update_name(f"{self._method} {route}")
        self._span.set_attribute("http.route", route)
        self._span.set_attribute("http.response.status_code", status)


@contextmanager
def request_span(scope: Scope) -> Iterator[RequestSpan]:
    """A span around one request, a child of the caller's where ``traceparent`` names one."""
    if _tracer is None:
        yield NO_SPAN
        return
    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with _tracer.start_as_current_span(
        scope["method"],
        context=propagate.extract(carrier),
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": scope["method"]},
    ) as span:
        yield _TracedRequest(span, scope["method"])
