"""The ASGI application: finds the operation of a request, runs its checks and its handler, and
turns whatever happens into one answer, one log line and one count.

It knows no route and no engine.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from omnigraph.errors import (
    ApiContractMismatch,
    Conflict,
    GraphNotFound,
    MethodNotAllowed,
    OmnigraphError,
    QueryCancelled,
    RequestRefused,
    RouteNotFound,
    ServiceUnavailable,
    UnsupportedLocation,
)
from omnigraph.server.http.answers import Answer, AnyAnswer, Headers, Stream, encoded
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import Operation
from omnigraph.server.logs import access_log
from omnigraph.server.services import Services
from omnigraph.server.tracing import request_span

log = logging.getLogger("omnigraph.server")

API_HEADER: Final = "omnigraph-http-api"
API_VERSIONS: Final = ("0.10", "0.11", "0.12", "0.13")
URL_BYTES_MAX: Final = 16_384
"""A longer URL is a mistake: large selections belong into a body."""
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
CLIENT_CLOSED: Final = 499
"""Nobody receives this status; the log and the metrics have it."""
UNMATCHED: Final = "unmatched"


@dataclass(slots=True)
class _Log:
    """What is known about a request when it ends."""

    method: str
    route: str = UNMATCHED
    actor: str | None = None
    graph: str | None = None
    commit: str | None = None
    reason: str | None = None
    status: int = 500


class Resource:
    """All methods of one path, as an ASGI endpoint."""

    def __init__(self, application: Application, operations: Mapping[str, Operation]) -> None:
        self._application = application
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations.get(scope["method"])
        if operation is None:
            raise MethodNotAllowed(
                f"{scope['method']} is not a method of this path",
                details={"allow": sorted(self._operations)},
            )
        await self._application.carry_out(operation, scope, receive, send)


class Application:
    """The server as an ASGI application. ``services`` is set before the first request."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self.operations = operations
        self.services: Services | None = None
        by_path: dict[str, dict[str, Operation]] = {}
        for item in operations:
            by_path.setdefault(item.path, {})[item.method] = item
        # Fixed paths before those with a parameter at the same place.
        paths = sorted(by_path, key=lambda path: (":path}" in path, path.count("{")))
        routes = [Route(path, Resource(self, by_path[path])) for path in paths]
        self._router = Router(routes, redirect_slashes=False, default=_unmatched)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        services = self.services
        assert services is not None
        started = time.perf_counter()
        response = _Response(scope, send)
        noted = _Log(scope["method"])
        scope["omnigraph"] = (response, noted)
        try:
            with request_span(scope) as span:
                await self._respond(scope, receive, response, noted)
                span.finish(noted.route, noted.status)
        finally:
            seconds = time.perf_counter() - started
            services.metrics.observe(noted.method, noted.route, noted.status, seconds)
            access_log(
                response.request_id,
                noted.method,
                noted.route,
                noted.status,
                seconds,
                actor=noted.actor,
                graph=noted.graph,
                commit=noted.commit,
                reason=noted.reason,
            )

    async def _respond(
        self, scope: Scope, receive: Receive, response: _Response, noted: _Log
    ) -> None:
        try:
            if len(scope["raw_path"]) + len(scope["query_string"]) > URL_BYTES_MAX:
                raise RouteNotFound(f"the URL has more than {URL_BYTES_MAX} bytes")
            await self._router(scope, receive, response.send)
        except OmnigraphError as error:
            if response.started:
                log.error(
                    "the answer to request %s broke off: %s", response.request_id, error.message
                )
                noted.reason = error.code
                raise BrokenAnswer from None
            self._note_error(error, noted)
            await response.fail(error, noted)
        except BrokenAnswer:
            raise
        except Exception as error:
            log.exception("request %s failed", response.request_id)
            if response.started:
                raise BrokenAnswer from None
            await response.fail(OmnigraphError(str(error)), noted)

    def _note_error(self, error: OmnigraphError, noted: _Log) -> None:
        noted.reason = error.code
        assert self.services is not None
        if isinstance(error, Conflict) and noted.graph is not None:
            self.services.metrics.conflicts.labels(noted.graph, error.code).inc()

    async def carry_out(
        self, operation: Operation, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Check a request, run its handler and send the answer."""
        services = self.services
        assert services is not None
        response, noted = scope["omnigraph"]
        noted.route = operation.path
        call = Exchange(services, operation, scope, receive, response.request_id)
        response.stamp(call.headers.getlist(API_HEADER))
        if operation.action is not None:
            if services.policy.needs_token:
                call.actor = noted.actor = await services.authenticator.actor_of(call.headers)
            check_api_version(call.headers.getlist(API_HEADER))
        if operation.about_a_graph:
            call.served = services.registry.find(call.path["graph_id"])
            noted.graph = call.served.id
        if services.stopping and operation.writes:
            raise ServiceUnavailable("the server is stopping")
        try:
            answer = await operation.handler(call)
        finally:
            response.refusal_headers = call.refusal_headers
        if operation.successor is not None and call.served is not None:
            response.deprecate(f"/graphs/{call.served.id}{operation.successor}")
        if isinstance(answer, Answer):
            noted.commit = answer.commit_id
            if operation.writes and answer.commit_id not in (None, "None"):
                assert noted.graph is not None
                services.metrics.commits.labels(noted.graph).inc()
        noted.status = answer.status
        await response.deliver(answer)


async def _unmatched(scope: Scope, receive: Receive, send: Send) -> None:
    raise RouteNotFound("there is no such path")


def check_api_version(given: list[str]) -> None:
    """Raise unless the client speaks a version of the API that the server speaks, or says none."""
    if given and (len(given) > 1 or given[0].strip() not in API_VERSIONS):
        raise ApiContractMismatch(
            f"this server speaks versions {API_VERSIONS[0]} to {API_VERSIONS[-1]} of the API",
            details={"supported": list(API_VERSIONS)},
        )


class BrokenAnswer(Exception):
    """An answer failed after its headers: the connection is closed, so that the client sees it."""


class _Response:
    """The response of one request: its standing headers, and whether it has begun."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_head = scope["method"] == "HEAD"
        self.started = False
        self.refusal_headers: Headers = ()
        given = [value for name, value in scope["headers"] if name == b"x-request-id"]
        text = given[0].decode("latin-1") if len(given) == 1 else ""
        self.request_id = text if _REQUEST_ID.fullmatch(text) else os.urandom(8).hex()
        self._headers.append((b"x-request-id", self.request_id.encode()))

    async def send(self, message: Message) -> None:
        self.started = True
        await self._send(message)

    def stamp(self, asked: list[str]) -> None:
        """Answer a client of version 0.13 with that version."""
        if [item.strip() for item in asked] == ["0.13"]:
            self._headers.append((b"omnigraph-http-api", b"0.13"))

    def deprecate(self, successor: str) -> None:
        self._headers.append((b"deprecation", b"true"))
        link = f'<{successor}>; rel="successor-version"'
        self._headers.append((b"link", link.encode()))

    async def fail(self, error: OmnigraphError, noted: _Log) -> None:
        """Send an error as the whole answer."""
        if isinstance(error, QueryCancelled):
            noted.status = CLIENT_CLOSED
            status = 503  # the server stops, or nobody receives it
            error = ServiceUnavailable("the request was cancelled")
        else:
            status = noted.status = error.status
        headers: list[tuple[str, str]] = []
        if isinstance(error, RequestRefused) and error.retry_after_s is not None:
            headers.append(("retry-after", str(error.retry_after_s)))
        if isinstance(error, MethodNotAllowed):
            headers.append(("allow", ", ".join(error.details["allow"])))
        if status == 401:
            headers.append(("www-authenticate", "Bearer"))
        if status in (400, 408, 413, 415):
            # The rest of the body is not read: the connection cannot be used again.
            headers.append(("connection", "close"))
        headers += self.refusal_headers
        body = encoded(error_body(error, self.request_id))
        await self.deliver(Answer(body, status, headers=tuple(headers)))

    async def deliver(self, answer: AnyAnswer) -> None:
        """Send an answer."""
        headers = [*self._headers, *_encoded_headers(answer.headers)]
        if answer.media is not None:
            headers.append((b"content-type", answer.media.encode()))
        length = answer.length
        if length is None and isinstance(answer, Answer) and answer.status not in (204, 304):
            length = len(answer.body)
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await self.send(start)
        if isinstance(answer, Stream):
            async for chunk in answer.chunks:
                await self._body(chunk, more=True)
            await self._body(b"", more=False)
        else:
            await self._body(b"" if self._is_head else answer.body, more=False)

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def _encoded_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def error_body(error: OmnigraphError, request_id: str) -> dict[str, Any]:
    """The body of an error. Where the text may name storage, it is replaced."""
    if error.status != 500 and not isinstance(error, GraphNotFound | UnsupportedLocation):
        return error.to_json()
    log.error("request %s failed: %s: %s", request_id, error.code, error.message)
    hidden = type(error).__new__(type(error))
    OmnigraphError.__init__(
        hidden,
        f"the request failed inside the server; its log has the reason under {request_id}",
        remedy=error.remedy,
        details={"request_id": request_id},
    )
    return hidden.to_json()
