"""Every operation of the server."""

from __future__ import annotations

from typing import Any, Final

from omnigraph.server.http.answers import Answer, encoded
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.openapi import document
from omnigraph.server.http.operation import Operation, Success
from omnigraph.server.http.shapes import Json
from omnigraph.server.routes import (
    analytics,
    blobs,
    branches,
    exports,
    history,
    loads,
    mutations,
    queries,
    schemas,
    service,
    stored_queries,
    tags,
    undo,
)


async def openapi(call: Exchange) -> Answer:
    return Answer(encoded(openapi_document(secured=call.services.policy.needs_token)))


def openapi_document(*, secured: bool) -> dict[str, Any]:
    """The OpenAPI document of all operations."""
    return document(OPERATIONS, secured=secured)


OPERATIONS: Final = (
    *service.OPERATIONS,
    Operation(
        "GET",
        "/openapi.json",
        "openapi",
        "health",
        "This document.",
        openapi,
        None,
        {200: Success("OpenAPI 3.1.", Json)},
    ),
    *queries.OPERATIONS,
    *mutations.OPERATIONS,
    *loads.OPERATIONS,
    *schemas.OPERATIONS,
    *branches.OPERATIONS,
    *history.OPERATIONS,
    *blobs.OPERATIONS,
    *exports.OPERATIONS,
    *tags.OPERATIONS,
    *undo.OPERATIONS,
    *analytics.OPERATIONS,
    *stored_queries.OPERATIONS,
)
