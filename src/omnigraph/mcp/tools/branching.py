"""Tools for working on branches: create, review, merge, delete."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from omnigraph import MergeResult
from omnigraph.mcp import shapes
from omnigraph.mcp.answers import fitting, rest_of
from omnigraph.mcp.calls import GraphTool
from omnigraph.mcp.session import McpSession
from omnigraph.mcp.tools.arguments import (
    ExpectedHeadArgument,
    GraphArgument,
    IdempotencyArgument,
    MessageArgument,
)

SourceArgument = Annotated[str, Field(description="The branch to merge.")]
TargetArgument = Annotated[str, Field(description="The branch to merge into.")]
StrategyArgument = Annotated[
    Literal["ours", "theirs"] | None,
    Field(
        description="Decides every contested property: `ours` keeps the target's value, `theirs` "
        "takes the source's."
    ),
]
ResolutionsArgument = Annotated[
    list[dict[str, Any]] | None,
    Field(
        description="Decisions about single entities: an entry of `merge_conflicts` with a `take` "
        'of ours, theirs, base or delete, or with `properties` to set, such as {"entity_kind": '
        '"node", "type_name": "Person", "entity_id": "ana", "take": "theirs"}.'
    ),
]


class BranchTools:
    """The tools for working on branches."""

    def __init__(self, session: McpSession) -> None:
        self._session = session

    def branches_list(self, graph: GraphArgument = None) -> dict[str, Any]:
        """The names of all branches."""
        return {"branches": sorted(self._session.graph(graph).branches.list())}

    def branches_create(
        self,
        name: Annotated[str, Field(description="The new branch, such as agents/one/fix-names.")],
        base: Annotated[
            str, Field(description="What to fork: a branch, a commit, a tag or a time.")
        ] = "main",
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Create a branch to work on. It costs nothing, and nobody sees it until it is merged."""
        access = self._session.access
        access.require_own_branch(name, "create")
        made = self._session.graph(graph).branches.create(name, base, actor=access.actor)
        return {"name": made.name, "from": base, "actor_id": access.actor}

    def branches_delete(
        self,
        name: Annotated[str, Field(description="The branch.")],
        force: Annotated[
            bool,
            Field(description="Also if it has commits that no other branch has: they are lost."),
        ] = False,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Delete a branch. Refused while it has commits that were not merged, unless forced."""
        access = self._session.access
        access.require_own_branch(name, "delete")
        self._session.graph(graph).branches.delete(name, force=force)
        return {"name": name, "actor_id": access.actor}

    def merge_preview(
        self,
        source: SourceArgument,
        target: TargetArgument = "main",
        strategy: StrategyArgument = None,
        resolutions: ResolutionsArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """What a merge would change, and every conflict with the values of both sides. Writes
        nothing."""
        result = self._session.graph(graph).merge(
            source, target, dry_run=True, strategy=strategy, resolutions=resolutions or ()
        )
        return self._preview(result)

    def branches_merge(
        self,
        source: SourceArgument,
        target: TargetArgument = "main",
        strategy: StrategyArgument = None,
        resolutions: ResolutionsArgument = None,
        delete_branch: Annotated[bool, Field(description="Delete the source afterwards.")] = False,
        message: MessageArgument = None,
        expected_head: ExpectedHeadArgument = None,
        idempotency_key: IdempotencyArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Merge a branch into another one, as one commit. Conflicts are listed and change
        nothing: look at `merge_preview` first."""
        access = self._session.access
        access.require_own_target(target)
        if delete_branch:
            access.require_own_branch(source, "delete")
        result = self._session.graph(graph).merge(
            source,
            target,
            strategy=strategy,
            resolutions=resolutions or (),
            delete_branch=delete_branch,
            message=message,
            actor=access.actor,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
        )
        return result.to_json(access.actor)

    def _preview(self, result: MergeResult) -> dict[str, Any]:
        """All conflicts, and as many of the changes as fit."""
        body = result.to_json(self._session.access.actor)
        changes = body["changes"]
        shown = fitting(changes, self._session.access.limits)
        body["changes"] = shown
        following = {"old": result.target, "new": result.source}
        hint = "Page through `diff` with these arguments."
        return body | rest_of(changes, len(shown), following, hint)


def branch_tools(session: McpSession) -> list[GraphTool]:
    """The tools, as the server registers them."""
    tools = BranchTools(session)
    return [
        GraphTool("branches_list", "Branches", tools.branches_list, shapes.ToolBranches),
        GraphTool("merge_preview", "Preview a merge", tools.merge_preview, shapes.ToolMerge),
        GraphTool(
            "branches_create",
            "Create a branch",
            tools.branches_create,
            shapes.ToolBranch,
            writes=True,
        ),
        GraphTool(
            "branches_merge", "Merge a branch", tools.branches_merge, shapes.ToolMerge, writes=True
        ),
        GraphTool(
            "branches_delete",
            "Delete a branch",
            tools.branches_delete,
            shapes.ToolBranch,
            writes=True,
            destructive=True,
        ),
    ]
