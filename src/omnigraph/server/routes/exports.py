"""Exports: a branch, or an older state, as a stream of NDJSON."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct

from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer
from omnigraph.server.http.exchange import Exchange, one_state
from omnigraph.server.http.operation import NDJSON, Body, Operation, Success


class ExportBody(Struct, forbid_unknown_fields=True):
    """Which state, and which types of it."""

    branch: str | None = None
    snapshot: str | None = None
    type_names: list[str] | None = None


async def export(call: Exchange) -> AnyAnswer:
    body = await call.json(ExportBody)
    branch, at = one_state(body.branch, body.snapshot)
    await call.allow_state(GraphAction.EXPORT, branch, at)
    make = partial(call.graph.export, branch, at, body.type_names or None)
    return await call.stream(make, f"{NDJSON}; charset=utf-8")


OPERATIONS: Final = (
    Operation(
        "POST",
        "/graphs/{graph_id}/export",
        "cluster_export",
        "snapshots",
        "All nodes and edges, one record per line; a load reads them back.",
        export,
        GraphAction.EXPORT,
        {200: Success("The records.", media=(NDJSON,))},
        (409, 410),
        (),
        Body(ExportBody),
    ),
)
