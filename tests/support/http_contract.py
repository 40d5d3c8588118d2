"""Checks every response of a client against what its operation declares."""

from __future__ import annotations

import re

import httpx
import msgspec

from omnigraph.server.http.operation import JSON, Operation
from omnigraph.server.http.shapes import ErrorOutput
from omnigraph.server.routes.inventory import OPERATIONS


def operation_of(method: str, path: str) -> Operation | None:
    """The declared operation of a request; fixed paths count before those with parameters."""
    found = [item for item in OPERATIONS if item.method == method and _matches(item.path, path)]
    return min(found, key=lambda item: item.path.count("{"), default=None)


def _matches(pattern: str, path: str) -> bool:
    made = re.sub(r"\{\w+:path\}", ".+", pattern)
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", made), path) is not None


def check_response(response: httpx.Response) -> None:
    """The status is declared, and a JSON body has exactly the declared shape."""
    response.read()
    request = response.request
    operation = operation_of(request.method, request.url.path)
    if operation is None:
        assert response.status_code in (400, 404, 405), response.status_code
        return
    status = response.status_code
    assert status in operation.statuses, f"{operation.operation_id}: {status} {response.text}"
    if request.method == "HEAD" or not response.content:
        return
    media = response.headers["content-type"].partition(";")[0]
    success = operation.successes.get(status)
    if success is None:
        assert media == JSON
        _require_shape(response.content, ErrorOutput)
    elif media == JSON and success.shape is not None:
        _require_shape(response.content, success.shape)


def _require_shape(content: bytes, shape: type) -> None:
    """Decode strictly; members that the shape does not name are an omission in it."""
    found = msgspec.json.decode(content, type=shape)
    if isinstance(found, msgspec.Struct):
        given = set(msgspec.json.decode(content))
        known = {item.encode_name for item in msgspec.structs.fields(shape)}
        assert given <= known, f"{shape.__name__} does not declare {given - known}"
