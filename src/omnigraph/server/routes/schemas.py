"""The schema of a graph, and the tables behind its types."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec import Struct

from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import (
    BRANCH,
    IDEMPOTENCY,
    SNAPSHOT,
    Body,
    Operation,
    Success,
)
from omnigraph.server.http.shapes import (
    SchemaApplied,
    SchemaPlanned,
    SchemaSource,
    SnapshotAnswer,
)


class SchemaPlanBody(Struct, forbid_unknown_fields=True):
    """A new schema, and how existing entities are migrated."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = None
    backfill: dict[str, Any] | None = None
    compute: dict[str, str] | None = None
    undrop: list[str] = []

    def arguments(self) -> dict[str, Any]:
        """The change as arguments of the handle."""
        return {
            "branch": "main" if self.branch is None else self.branch,
            "allow_data_loss": self.allow_data_loss,
            "backfill": self.backfill,
            "compute": self.compute,
            "undrop": self.undrop,
        }


class SchemaApplyBody(SchemaPlanBody, forbid_unknown_fields=True, kw_only=True):
    """The same, to be applied."""

    if_commit: str | None = None
    message: str | None = None
    metadata: dict[str, str] | None = None


async def show(call: Exchange) -> AnyAnswer:
    branch, at = call.state()
    if branch is None and at is None:
        call.allow(GraphAction.READ)
    else:
        await call.allow_state(GraphAction.READ, branch, at)
    work = partial(call.graph.schema, branch or "main", at=at)
    return json_answer({"schema_source": (await call.read(work)).source})


async def plan(call: Exchange) -> AnyAnswer:
    body = await call.json(SchemaPlanBody)
    chosen = body.arguments()
    call.allow(GraphAction.READ, branch=chosen["branch"])
    graph = call.graph

    def answer() -> dict[str, Any]:
        found = graph.plan_schema(body.schema_source, **chosen)
        return {"uri": graph.uri, "step_count": len(found.steps), **found.to_json()}

    return json_answer(await call.read(answer))


async def apply(call: Exchange) -> AnyAnswer:
    body = await call.json(SchemaApplyBody)
    chosen = body.arguments()
    call.allow(GraphAction.SCHEMA_APPLY, target=chosen["branch"])
    graph = call.graph
    work = partial(
        graph.apply_schema,
        body.schema_source,
        message=body.message,
        actor=call.actor,
        metadata=body.metadata,
        expected_head=body.if_commit,
        idempotency_key=call.idempotency_key,
        **chosen,
    )

    def answer() -> dict[str, Any]:
        done = work()
        told = done.to_json()
        return {"uri": graph.uri, "step_count": len(told["steps"]), **told}

    return json_answer(await call.write(answer, len(body.schema_source)))


async def snapshot(call: Exchange) -> AnyAnswer:
    branch = call.text("branch") or "main"
    call.allow(GraphAction.READ, branch=branch)
    work = partial(call.graph.snapshot, branch)
    return json_answer(await call.read(lambda: work().to_json()))


OPERATIONS: Final = (
    Operation(
        "GET",
        "/graphs/{graph_id}/snapshot",
        "cluster_getSnapshot",
        "snapshots",
        "Every type of a branch, with its version and how many entities it has.",
        snapshot,
        GraphAction.READ,
        {200: Success("The snapshot.", SnapshotAnswer)},
        (),
        (BRANCH,),
    ),
    Operation(
        "GET",
        "/graphs/{graph_id}/schema",
        "cluster_getSchema",
        "schema",
        "The accepted schema, as it was written.",
        show,
        GraphAction.READ,
        {200: Success("The schema.", SchemaSource)},
        (410,),
        (BRANCH, SNAPSHOT),
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/schema/plan",
        "planSchema",
        "schema",
        "The steps that lead to a new schema. Changes nothing.",
        plan,
        GraphAction.READ,
        {200: Success("The plan.", SchemaPlanned)},
        (409,),
        (),
        Body(SchemaPlanBody),
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/schema/apply",
        "cluster_applySchema",
        "schema",
        "Make a schema that of a branch, as one commit.",
        apply,
        GraphAction.SCHEMA_APPLY,
        {200: Success("The steps, and the commit.", SchemaApplied)},
        (412,),
        (IDEMPOTENCY,),
        Body(SchemaApplyBody),
        writes=True,
    ),
)
