"""Revert, cherry-pick, restore, reset: commits that undo or repeat others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct

from omnigraph import Commit
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import IDEMPOTENCY, Body, Operation, Success
from omnigraph.server.http.shapes import UndoAnswer
from omnigraph.server.routes.branches import ESTIMATED_BYTES, DecisionsBody


class CommitBody(DecisionsBody, forbid_unknown_fields=True, kw_only=True):
    """A commit to undo or to repeat on a branch."""

    commit: str
    branch: str | None = None
    if_commit: str | None = None
    message: str | None = None
    metadata: dict[str, str] | None = None


class StateBody(Struct, forbid_unknown_fields=True):
    """An older state of a branch."""

    target: str
    branch: str | None = None
    if_commit: str | None = None
    message: str | None = None
    metadata: dict[str, str] | None = None


class RestoreBody(StateBody, forbid_unknown_fields=True, kw_only=True):
    """Which entities: ids by type key; null means all of the type."""

    only: dict[str, list[str] | None]


async def revert(call: Exchange) -> AnyAnswer:
    body = await call.json(CommitBody)
    return await _undone(call, body, partial(call.graph.revert, body.commit, **body.arguments()))


async def cherry_pick(call: Exchange) -> AnyAnswer:
    body = await call.json(CommitBody)
    work = partial(call.graph.cherry_pick, body.commit, **body.arguments())
    return await _undone(call, body, work)


async def restore(call: Exchange) -> AnyAnswer:
    body = await call.json(RestoreBody)
    return await _undone(call, body, partial(call.graph.restore, body.target, body.only))


async def reset(call: Exchange) -> AnyAnswer:
    body = await call.json(StateBody)
    return await _undone(call, body, partial(call.graph.reset, body.target))


async def _undone(
    call: Exchange, body: CommitBody | StateBody, verb: Callable[..., Commit | None]
) -> AnyAnswer:
    branch = "main" if body.branch is None else body.branch
    call.allow(GraphAction.CHANGE, branch=branch)
    work = partial(
        verb,
        branch=branch,
        message=body.message,
        actor=call.actor,
        metadata=body.metadata,
        expected_head=body.if_commit,
        idempotency_key=call.idempotency_key,
    )

    def answer() -> dict[str, Any]:
        made = work()
        return {"commit": None if made is None else made.to_json()}

    return json_answer(await call.write(answer, ESTIMATED_BYTES))


_DONE: Final = {200: Success("The new commit; null where nothing was left to do.", UndoAnswer)}

OPERATIONS: Final = tuple(
    Operation(
        "POST",
        f"/graphs/{{graph_id}}/{path}",
        operation_id,
        "commits",
        summary,
        handler,
        GraphAction.CHANGE,
        _DONE,
        (410, 412),
        (IDEMPOTENCY,),
        Body(shape),
        writes=True,
    )
    for path, operation_id, summary, handler, shape in (
        ("revert", "revertCommit", "Undo a commit with a new one.", revert, CommitBody),
        (
            "cherry-pick",
            "cherryPickCommit",
            "Repeat a commit of another branch.",
            cherry_pick,
            CommitBody,
        ),
        (
            "restore",
            "restoreEntities",
            "Bring entities, or whole types, back from an older state.",
            restore,
            RestoreBody,
        ),
        (
            "reset",
            "resetBranch",
            "Make a branch hold what an older commit of it held, as a new commit.",
            reset,
            StateBody,
        ),
    )
)
