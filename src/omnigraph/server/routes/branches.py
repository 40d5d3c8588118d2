"""Branches: list, create, delete, protect, merge."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from omnigraph import MergeResult
from omnigraph.errors import Forbidden, OmnigraphError
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import IDEMPOTENCY, Body, Operation, Success, WireParameter
from omnigraph.server.http.shapes import (
    BranchCreated,
    BranchDeleted,
    BranchList,
    BranchProtection,
    MergeAnswer,
)

ESTIMATED_BYTES: Final = 256
"""What an operation on branches counts for in admission."""


class BranchCreateBody(Struct, rename={"from_": "from"}, forbid_unknown_fields=True):
    """A new branch, at a branch, a commit, a tag or a time."""

    name: str
    from_: str | None = None


class ProtectBody(Struct, forbid_unknown_fields=True):
    """Whether a branch is protected from deletion and reset."""

    protected: bool = True
    merges_only: bool = False


class DecisionsBody(Struct, forbid_unknown_fields=True):
    """How conflicts are decided."""

    level: str = "property"
    strategy: str | None = None
    by_type: dict[str, str] | None = None
    resolutions: list[dict[str, Any]] = []

    def arguments(self) -> dict[str, Any]:
        """The decisions as arguments of the handle."""
        return {
            "level": self.level,
            "strategy": self.strategy,
            "by_type": self.by_type,
            "resolutions": self.resolutions,
        }


class MergeBody(DecisionsBody, forbid_unknown_fields=True, kw_only=True):
    """A merge of one branch into another."""

    source: str
    target: str | None = None
    delete_branch: bool = False
    dry_run: bool = False
    if_commit: str | None = None
    message: str | None = None
    metadata: dict[str, str] | UnsetType | None = UNSET


async def list_branches(call: Exchange) -> AnyAnswer:
    call.allow(GraphAction.READ)
    return json_answer({"branches": sorted(await call.read(call.graph.branches.list))})


async def create(call: Exchange) -> AnyAnswer:
    body = await call.json(BranchCreateBody)
    source = "main" if body.from_ is None else body.from_
    call.allow(GraphAction.BRANCH_CREATE, branch=source, target=body.name)
    graph = call.graph
    work = partial(
        graph.branches.create,
        body.name,
        source,
        actor=call.actor,
        idempotency_key=call.idempotency_key,
    )
    await call.write(work, ESTIMATED_BYTES)
    return json_answer(
        {"uri": graph.uri, "from": source, "name": body.name, "actor_id": call.actor}
    )


async def delete(call: Exchange) -> AnyAnswer:
    name, graph = call.path["branch"], call.graph
    force = call.truth("force")
    call.allow(GraphAction.BRANCH_DELETE, target=name)
    work = partial(graph.branches.delete, name, force=force, idempotency_key=call.idempotency_key)
    await call.write(work, ESTIMATED_BYTES)
    return json_answer({"uri": graph.uri, "name": name, "actor_id": call.actor})


async def protect(call: Exchange) -> AnyAnswer:
    name, graph = call.path["branch"], call.graph
    body = await call.json(ProtectBody)
    call.allow(GraphAction.BRANCH_DELETE, target=name)
    work = partial(graph.branches.protect, name, body.protected, merges_only=body.merges_only)
    await call.write(work, ESTIMATED_BYTES)
    return json_answer(
        {
            "uri": graph.uri,
            "name": name,
            "protected": body.protected,
            "merges_only": body.merges_only,
        }
    )


async def merge(call: Exchange) -> AnyAnswer:
    body = await call.json(MergeBody)
    target = "main" if body.target is None else body.target
    call.allow(GraphAction.BRANCH_MERGE, branch=body.source, target=target)
    graph = call.graph
    work = partial(
        graph.merge,
        body.source,
        target,
        dry_run=body.dry_run,
        message=body.message,
        actor=call.actor,
        metadata=None if body.metadata is UNSET else body.metadata,
        expected_head=body.if_commit,
        idempotency_key=call.idempotency_key,
        **body.arguments(),
    )

    def answer() -> dict[str, Any]:
        done: MergeResult = work()
        found = done.to_json(call.actor)
        found.setdefault("commit", None)
        return found

    if body.dry_run:
        return json_answer(await call.read(answer))
    found = await call.write(answer, ESTIMATED_BYTES)
    if body.delete_branch:
        found |= await _deleted(call, body.source)
    return json_answer(found)


async def _deleted(call: Exchange, name: str) -> dict[str, Any]:
    """Delete a merged branch under its own check; the merge stands whatever becomes of it."""
    try:
        call.allow(GraphAction.BRANCH_DELETE, target=name)
        await call.write(partial(call.graph.branches.delete, name), ESTIMATED_BYTES)
    except (Forbidden, OmnigraphError) as problem:
        return {"branch_deleted": False, "branch_delete_error": problem.message}
    return {"branch_deleted": True}


OPERATIONS: Final = (
    Operation(
        "GET",
        "/graphs/{graph_id}/branches",
        "cluster_listBranches",
        "branches",
        "The names of all branches.",
        list_branches,
        GraphAction.READ,
        {200: Success("In order.", BranchList)},
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/branches",
        "cluster_createBranch",
        "branches",
        "Create a branch. Nothing is copied.",
        create,
        GraphAction.BRANCH_CREATE,
        {200: Success("It exists.", BranchCreated)},
        (410,),
        (IDEMPOTENCY,),
        Body(BranchCreateBody),
        writes=True,
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/branches/merge",
        "cluster_mergeBranches",
        "branches",
        "Merge a branch into another, or with `dry_run` show what that would do.",
        merge,
        GraphAction.BRANCH_MERGE,
        {200: Success("What the merge did, or would do.", MergeAnswer)},
        (412,),
        (IDEMPOTENCY,),
        Body(MergeBody),
        writes=True,
    ),
    Operation(
        "DELETE",
        "/graphs/{graph_id}/branches/{branch:path}",
        "cluster_deleteBranch",
        "branches",
        "Delete a branch.",
        delete,
        GraphAction.BRANCH_DELETE,
        {200: Success("It is gone.", BranchDeleted)},
        (),
        (
            IDEMPOTENCY,
            WireParameter(
                "force",
                "Even if it has commits that no other branch has.",
                kind="boolean",
            ),
        ),
        writes=True,
    ),
    Operation(
        "PATCH",
        "/graphs/{graph_id}/branches/{branch:path}",
        "protectBranch",
        "branches",
        "Protect a branch from deletion and reset, or lift the protection.",
        protect,
        GraphAction.BRANCH_DELETE,
        {200: Success("As it is now.", BranchProtection)},
        (),
        (),
        Body(ProtectBody),
        writes=True,
    ),
)
