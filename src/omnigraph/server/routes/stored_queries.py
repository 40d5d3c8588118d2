"""Stored queries. The server has a registry of them when a cluster declares some; until then it is
empty: the list has no entry, and no name is found."""

from __future__ import annotations

from typing import Final, NoReturn

from msgspec import Struct, field

from omnigraph.errors import StoredQueryNotFound
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import IDEMPOTENCY, IF_COMMIT, Body, Operation, Success
from omnigraph.server.http.shapes import Json, StoredQueryList
from omnigraph.server.routes.queries import Parameters, no_parameters


class InvokeBody(Struct, forbid_unknown_fields=True):
    """Arguments of a stored query."""

    params: Parameters = field(default_factory=no_parameters)
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None


async def list_queries(call: Exchange) -> AnyAnswer:
    call.allow(GraphAction.READ, branch="main")
    return json_answer({"queries": []})


async def invoke(call: Exchange) -> NoReturn:
    call.refuse_condition(f"/queries/{call.path['name']}/if-graph-commit")
    raise StoredQueryNotFound("stored query not found")


async def invoke_if(call: Exchange) -> NoReturn:
    _ = call.expected_head
    raise StoredQueryNotFound("stored query not found")


OPERATIONS: Final = (
    Operation(
        "GET",
        "/graphs/{graph_id}/queries",
        "cluster_list_queries",
        "queries",
        "The stored queries.",
        list_queries,
        GraphAction.READ,
        {200: Success("In order of names.", StoredQueryList)},
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/queries/{name}",
        "cluster_invoke_query",
        "queries",
        "Run a stored query.",
        invoke,
        GraphAction.INVOKE_QUERY,
        {200: Success("The answer of a read or of a mutation.", Json)},
        (),
        (IDEMPOTENCY,),
        Body(InvokeBody, required=False),
        writes=True,
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/queries/{name}/if-graph-commit",
        "cluster_invoke_query_if_graph_commit",
        "queries",
        "Run a stored mutation if a commit is the head of the branch.",
        invoke_if,
        GraphAction.INVOKE_QUERY,
        {200: Success("The answer of the mutation.", Json)},
        (412,),
        (IDEMPOTENCY, IF_COMMIT),
        Body(InvokeBody, required=False),
        writes=True,
    ),
)
