"""Tags: names for commits."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct

from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import IDEMPOTENCY, Body, Operation, Success
from omnigraph.server.http.shapes import TagList, TagShape
from omnigraph.server.routes.branches import ESTIMATED_BYTES


class TagBody(Struct, forbid_unknown_fields=True):
    """A name for a commit."""

    name: str
    target: str | None = None
    message: str | None = None
    force: bool = False


async def list_tags(call: Exchange) -> AnyAnswer:
    call.allow(GraphAction.READ)
    found = await call.read(call.graph.tags.list)
    return json_answer({"tags": [tag.to_json() for tag in found]})


async def create(call: Exchange) -> AnyAnswer:
    body = await call.json(TagBody)
    target = "main" if body.target is None else body.target
    call.allow(GraphAction.BRANCH_CREATE, branch=target, target=body.name)
    work = partial(
        call.graph.tags.create,
        body.name,
        target,
        force=body.force,
        actor=call.actor,
        message=body.message,
        idempotency_key=call.idempotency_key,
    )
    return json_answer((await call.write(work, ESTIMATED_BYTES)).to_json())


async def delete(call: Exchange) -> AnyAnswer:
    name = call.path["tag"]
    call.allow(GraphAction.BRANCH_DELETE, target=name)
    work = partial(call.graph.tags.delete, name, idempotency_key=call.idempotency_key)
    return json_answer((await call.write(work, ESTIMATED_BYTES)).to_json())


OPERATIONS: Final = (
    Operation(
        "GET",
        "/graphs/{graph_id}/tags",
        "listTags",
        "commits",
        "All tags, with the commits they name.",
        list_tags,
        GraphAction.READ,
        {200: Success("In order of names.", TagList)},
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/tags",
        "createTag",
        "commits",
        "Name a commit. A tag does not move, and its commit stays readable.",
        create,
        GraphAction.BRANCH_CREATE,
        {200: Success("The tag.", TagShape)},
        (410,),
        (IDEMPOTENCY,),
        Body(TagBody),
        writes=True,
    ),
    Operation(
        "DELETE",
        "/graphs/{graph_id}/tags/{tag:path}",
        "deleteTag",
        "commits",
        "Remove a tag.",
        delete,
        GraphAction.BRANCH_DELETE,
        {200: Success("The tag as it was.", TagShape)},
        (),
        (IDEMPOTENCY,),
        writes=True,
    ),
)
