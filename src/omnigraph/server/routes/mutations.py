"""Write queries: one commit each, or none."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from omnigraph.errors import InvalidInput
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import IDEMPOTENCY, IF_COMMIT, Body, Operation, Success
from omnigraph.server.http.shapes import MutationAnswer
from omnigraph.server.routes.queries import Parameters, no_parameters, parameters

CONDITIONAL: Final = "/mutate/if-graph-commit"


class MutateBody(Struct, forbid_unknown_fields=True):
    """A write query. ``query_source`` and ``query_name`` are older names of members."""

    query: str | None = None
    name: str | None = None
    params: Parameters = field(default_factory=no_parameters)
    branch: str | None = None
    query_source: str | None = None
    query_name: str | None = None
    message: str | None = None
    metadata: dict[str, str] | None = None

    @property
    def text(self) -> str:
        found = self.query if self.query is not None else self.query_source
        if found is None or (self.query is not None and self.query_source is not None):
            raise InvalidInput("`query` must be given once", remedy="Give the text as `query`.")
        return found


async def mutate(call: Exchange) -> AnyAnswer:
    call.refuse_condition(CONDITIONAL)
    return await _mutated(call, None)


async def mutate_if(call: Exchange) -> AnyAnswer:
    return await _mutated(call, call.expected_head)


async def _mutated(call: Exchange, expected_head: str | None) -> AnyAnswer:
    body = await call.json(MutateBody)
    text, given = body.text, parameters(body.params)
    branch = "main" if body.branch is None else body.branch
    call.allow(GraphAction.CHANGE, branch=branch)
    work = partial(
        call.graph.mutate,
        text,
        body.name if body.name is not None else body.query_name,
        given,
        branch,
        message=body.message,
        actor=call.actor,
        metadata=body.metadata,
        expected_head=expected_head,
        idempotency_key=call.idempotency_key,
    )

    def answer() -> dict[str, Any]:
        return work().to_json()

    size = len(text) + len(bytes(body.params))
    return json_answer(await call.write(answer, size))


_DONE: Final = {
    200: Success("What changed, and the commit; null where nothing did.", MutationAnswer)
}

OPERATIONS: Final = tuple(
    Operation(
        "POST",
        f"/graphs/{{graph_id}}{path}",
        operation_id,
        "mutations",
        summary,
        handler,
        GraphAction.CHANGE,
        _DONE,
        refusals,
        (IDEMPOTENCY, *headers),
        Body(MutateBody),
        writes=True,
        successor=successor,
    )
    for path, operation_id, summary, handler, refusals, headers, successor in (
        ("/mutate", "cluster_mutate", "Run a write query.", mutate, (), (), None),
        (
            CONDITIONAL,
            "cluster_mutate_if_graph_commit",
            "Run a write query if a commit is the head of the branch.",
            mutate_if,
            (412,),
            (IF_COMMIT,),
            None,
        ),
        ("/change", "cluster_change", "Run a write query.", mutate, (), (), "/mutate"),
    )
)
