"""The shapes of structured answers. The values are those of ``to_json`` of the public types.

Members that a shape does not name are kept: a shape says what a client may rely on.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class ToolAnswer(BaseModel):
    """The root of all shapes."""

    model_config = ConfigDict(extra="allow")


class LeftOut(ToolAnswer):
    """What an answer left out, and the arguments of the call that gets it."""

    next_call: dict[str, Any]
    hint: str
    left_out: int | None = None
    """How many, where that is known."""


class BoundedAnswer(ToolAnswer):
    """An answer that may be cut."""

    rest: LeftOut | None = None


class ToolHealth(ToolAnswer):
    status: str
    version: str
    internal_schema_version: int
    graphs: list[str]


class ToolGraphs(ToolAnswer):
    graphs: list[dict[str, Any]]


class ToolSchema(ToolAnswer):
    schema_source: str
    branch: str | None = None


class ToolSnapshot(ToolAnswer):
    graph_branch: str
    graph_manifest_version: int
    datasets: list[dict[str, Any]]


class ToolRows(BoundedAnswer):
    query_name: str
    row_count: int
    rows: list[dict[str, Any]]
    columns: list[str] | None = None
    graph_commit_id: str | None = None


class ToolPlan(ToolAnswer):
    query_name: str
    steps: list[dict[str, Any]]


class ToolEntity(ToolAnswer):
    type: str
    id: str
    properties: dict[str, Any]


class ToolBranches(ToolAnswer):
    branches: list[str]


class ToolBranch(ToolAnswer):
    name: str


class ToolCommit(ToolAnswer):
    graph_commit_id: str
    created_at: int


class ToolCommits(BoundedAnswer):
    commits: list[dict[str, Any]]


class ToolBlock(BoundedAnswer):
    changes: list[dict[str, Any]]
    next_page_token: str | None = None


class ToolFeed(ToolAnswer):
    blocks: list[dict[str, Any]]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class ToolDiff(ToolAnswer):
    stats: dict[str, Any]
    changes: list[dict[str, Any]]
    next_page_token: str | None = None


class ToolHistory(ToolAnswer):
    events: list[dict[str, Any]]
    next_page_token: str | None = None


class ToolBlame(ToolAnswer):
    properties: list[dict[str, Any]]


class ToolMutation(ToolAnswer):
    branch: str
    affected_nodes: int
    affected_edges: int
    commit: dict[str, Any] | None


class ToolLoad(ToolAnswer):
    branch: str
    mode: str
    total_entities: int
    commit: dict[str, Any] | None


class ToolMerge(BoundedAnswer):
    source: str
    target: str
    outcome: str
