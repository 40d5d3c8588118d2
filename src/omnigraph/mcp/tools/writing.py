"""Tools that change a branch: mutations and loads, one commit each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from omnigraph.mcp import shapes
from omnigraph.mcp.calls import GraphTool
from omnigraph.mcp.session import McpSession
from omnigraph.mcp.tools.arguments import (
    BranchArgument,
    ExpectedHeadArgument,
    GraphArgument,
    IdempotencyArgument,
    MessageArgument,
    ParamsArgument,
    QueryNameArgument,
)


class WritingTools:
    """The tools that change a branch."""

    def __init__(self, session: McpSession) -> None:
        self._session = session

    def mutate(
        self,
        query: Annotated[
            str,
            Field(
                description="A write query, such as `query q($n: String) { insert Person "
                "{ name: $n } }` or `query q() { update Person set { age: 31 } "
                'where name = "ana" }`.'
            ),
        ],
        params: ParamsArgument = None,
        name: QueryNameArgument = None,
        branch: BranchArgument = "main",
        message: MessageArgument = None,
        expected_head: ExpectedHeadArgument = None,
        idempotency_key: IdempotencyArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Insert, update or delete entities as one commit; all of it happens, or nothing."""
        self._session.access.require_own_branch(branch, "write to")
        result = self._session.graph(graph).mutate(
            query,
            name,
            params,
            branch,
            message=message,
            actor=self._session.access.actor,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
        )
        return result.to_json()

    def load(
        self,
        data: Annotated[
            str,
            Field(
                description='Records as NDJSON: {"type": "Person", "data": {"name": "ana"}} for '
                'a node, {"edge": "Knows", "from": "ana", "to": "bo", "data": {}} for an edge.'
            ),
        ],
        mode: Annotated[
            Literal["upsert", "append", "merge", "overwrite"],
            Field(
                description="upsert: set what is given and keep the rest. append: only new "
                "entities. merge: replace whole entities. overwrite: replace every type that "
                "occurs in the data."
            ),
        ] = "upsert",
        branch: BranchArgument = "main",
        base: Annotated[
            str | None, Field(description="Create the branch from this one if it is missing.")
        ] = None,
        message: MessageArgument = None,
        expected_head: ExpectedHeadArgument = None,
        idempotency_key: IdempotencyArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Load many records as one commit. Every problem of the data is listed at once."""
        self._session.access.require_own_branch(branch, "write to")
        result = self._session.graph(graph).load(
            data.encode(),
            mode=mode,
            branch=branch,
            from_=base,
            format="ndjson",
            message=message,
            actor=self._session.access.actor,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
        )
        return result.to_json()


def writing_tools(session: McpSession) -> list[GraphTool]:
    """The tools, as the server registers them."""
    tools = WritingTools(session)
    return [
        GraphTool(
            "mutate",
            "Change entities",
            tools.mutate,
            shapes.ToolMutation,
            writes=True,
            destructive=True,
        ),
        GraphTool(
            "load", "Load records", tools.load, shapes.ToolLoad, writes=True, destructive=True
        ),
    ]
