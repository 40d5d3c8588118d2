"""The shapes of structured answers. The values are those of ``to_json`` of the public types.

Members that a shape does not name are kept: a shape says what a client may rely on.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """The root of all shapes."""

    model_config = ConfigDict(extra="allow")


class Rest(Shape):
    """What an answer left out, and the arguments of the call that gets it."""

    next_call: dict[str, Any]
    hint: str
    left_out: int | None = None
    """How many, where that is known."""


class Bounded(Shape):
    """An answer that may be cut."""

    rest: Rest | None = None


class HealthShape(Shape):
    status: str
    version: str
    internal_schema_version: int
    graphs: list[str]


class GraphsShape(Shape):
    graphs: list[dict[str, Any]]


class SchemaShape(Shape):
    schema_source: str
    branch: str | None = None


class SnapshotShape(Shape):
    graph_branch: str
    graph_manifest_version: int
    datasets: list[dict[str, Any]]


class RowsShape(Bounded):
    query_name: str
    row_count: int
    rows: list[dict[str, Any]]
    columns: list[str] | None = None
    graph_commit_id: str | None = None


class PlanShape(Shape):
    query_name: str
    steps: list[dict[str, Any]]


class EntityShape(Shape):
    type: str
    id: str
    properties: dict[str, Any]


class BranchesShape(Shape):
    branches: list[str]


class BranchShape(Shape):
    name: str


class CommitShape(Shape):
    graph_commit_id: str
    created_at: int


class CommitsShape(Bounded):
    commits: list[dict[str, Any]]


class BlockShape(Bounded):
    changes: list[dict[str, Any]]
    next_page_token: str | None = None


class FeedShape(Shape):
    blocks: list[dict[str, Any]]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class DiffShape(Shape):
    stats: dict[str, Any]
    changes: list[dict[str, Any]]
    next_page_token: str | None = None


class HistoryShape(Shape):
    events: list[dict[str, Any]]
    next_page_token: str | None = None


class BlameShape(Shape):
    properties: list[dict[str, Any]]


class MutationShape(Shape):
    branch: str
    affected_nodes: int
    affected_edges: int
    commit: dict[str, Any] | None


class LoadShape(Shape):
    branch: str
    mode: str
    total_entities: int
    commit: dict[str, Any] | None


class MergeShape(Bounded):
    source: str
    target: str
    outcome: str
