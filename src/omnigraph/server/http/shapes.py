"""The shapes of answers, for the OpenAPI document and for tests of it.

The values themselves come from ``to_json`` of the public result types; a test decodes what the
server sends into these shapes. ``T | None`` without a default is a member that is always there.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Json = dict[str, Any]
"""An object whose members depend on the data."""


class Shape(Struct, omit_defaults=True, rename=None):
    """The root of all shapes. Members that a later version adds are no error."""


class MergeConflictShape(Shape):
    entity_kind: str
    type_name: str
    entity_id: str | None
    kind: str
    message: str


class VersionConflictShape(Shape):
    entity_kind: str
    type_name: str
    expected_published_dataset_version: int | UnsetType = UNSET
    actual_published_dataset_version: int | UnsetType = UNSET


class ReadSetConflictShape(Shape):
    member: str
    expected: str | None
    actual: str | None


class KeyConflictShape(Shape):
    entity_kind: str
    type_name: str
    entity_id: str | UnsetType = UNSET


class ResourceLimitShape(Shape):
    resource: str
    limit: int
    actual: int


class BlobRangeShape(Shape):
    start: int
    length: int
    end: int | UnsetType = UNSET


class ExternalBlobSource(Shape):
    uri: str
    reason: str


class RecoveryShape(Shape):
    operation_id: str | UnsetType = UNSET


class PreconditionFailure(Shape):
    expected: str
    actual: str | UnsetType = UNSET


class FeedGapShape(Shape):
    first_unreadable_commit_id: str
    cursor: str | UnsetType = UNSET


class DiffRefusalShape(Shape):
    reason: str
    graph_commit_id: str
    type_name: str | UnsetType = UNSET


class PositionShape(Shape):
    line: int
    column: int
    byte: int


class DiagnosticShape(Shape):
    code: str
    expected: list[str]
    position: PositionShape | UnsetType = UNSET
    fix: str | UnsetType = UNSET


class ErrorOutput(Shape):
    """Every error."""

    error: str
    reason: str
    remedy: str
    retryable: bool
    code: (
        Literal[
            "unauthorized",
            "forbidden",
            "bad_request",
            "not_found",
            "method_not_allowed",
            "conflict",
            "too_many_requests",
            "internal",
            "api_contract_mismatch",
            "graph_unavailable",
            "service_unavailable",
        ]
        | UnsetType
    ) = UNSET
    details: Json | UnsetType = UNSET
    merge_conflicts: list[MergeConflictShape] | UnsetType = UNSET
    published_dataset_version_conflict: VersionConflictShape | UnsetType = UNSET
    read_set_conflict: ReadSetConflictShape | UnsetType = UNSET
    key_conflict: KeyConflictShape | UnsetType = UNSET
    resource_limit: ResourceLimitShape | UnsetType = UNSET
    blob_range: BlobRangeShape | UnsetType = UNSET
    external_blob_source: ExternalBlobSource | UnsetType = UNSET
    recovery_required: RecoveryShape | UnsetType = UNSET
    precondition_failure: PreconditionFailure | UnsetType = UNSET
    change_feed_gap: FeedGapShape | UnsetType = UNSET
    change_diff_refusal: DiffRefusalShape | UnsetType = UNSET
    diagnostic: DiagnosticShape | UnsetType = UNSET


class Implementation(Shape):
    name: str
    version: str


class Health(Shape):
    status: Literal["ok"]
    version: str
    internal_schema_version: int
    implementation: Implementation


class Readiness(Shape):
    ready: bool
    status: Literal["serving", "degraded", "blocked", "draining"]
    served_graph_count: int
    ready_graph_count: int
    loading_graph_count: int
    blocked_graph_count: int
    shutdown_grace_seconds: float


class GraphItem(Shape):
    graph_id: str
    uri: str
    state: Literal["ready", "blocked"]
    read_available: bool
    write_available: bool
    failure: str | UnsetType = UNSET


class GraphList(Shape):
    graphs: list[GraphItem]


class CommitShape(Shape):
    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: str
    message: str | None
    operation_id: str
    metadata: dict[str, str] | UnsetType = UNSET
    recovered_by: str | UnsetType = UNSET


class Target(Shape):
    branch: str | None
    snapshot: str | None


class QueryAnswer(Shape):
    query_name: str
    target: Target
    row_count: int
    rows: list[Json]
    columns: list[str] | UnsetType = UNSET
    graph_commit_id: str | UnsetType = UNSET


class MutationAnswer(Shape):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitShape | None


class ExplainAnswer(Shape):
    query_name: str
    steps: list[Json]
    graph_commit_id: str | UnsetType = UNSET
    answer: list[str] | UnsetType = UNSET
    starts: list[Json] | UnsetType = UNSET
    row_count: int | UnsetType = UNSET


class TypeCount(Shape):
    name: str
    entities_loaded: int


class LoadAnswer(Shape):
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    nodes: list[TypeCount]
    edges: list[TypeCount]
    total_entities: int
    actor_id: str | None
    commit: CommitShape | None
    uri: str | UnsetType = UNSET
    values_nulled: int | UnsetType = UNSET
    edges_repeated: int | UnsetType = UNSET


class BranchList(Shape):
    branches: list[str]


class BranchCreated(Shape, rename={"from_": "from"}):
    uri: str
    from_: str
    name: str
    actor_id: str | None


class BranchDeleted(Shape):
    uri: str
    name: str
    actor_id: str | None


class BranchProtection(Shape):
    uri: str
    name: str
    protected: bool
    merges_only: bool


class MergeAnswer(Shape):
    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged", "conflicts"]
    actor_id: str | None
    base_commit_id: str
    commit: CommitShape | None
    dry_run: bool | UnsetType = UNSET
    checked: bool | UnsetType = UNSET
    merge_conflicts: list[Json] | UnsetType = UNSET
    changes: list[Json] | UnsetType = UNSET
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error: str | UnsetType = UNSET


class ListedCommit(CommitShape, kw_only=True):
    tags: list[str] | UnsetType = UNSET


class CommitList(Shape):
    commits: list[ListedCommit]
    next_after: str | UnsetType = UNSET


class CauseShape(Shape):
    graph_commit_id: str
    authored_branch: str
    authored_at: int
    parent_commit_id: str | UnsetType = UNSET
    merged_parent_commit_id: str | UnsetType = UNSET
    actor_id: str | UnsetType = UNSET


class TypeIdentity(Shape):
    id: str
    name: str


class Image(Shape):
    properties: Json
    endpoints: Json | UnsetType = UNSET


class ChangeShape(Shape):
    kind: Literal["node", "edge"]
    type: TypeIdentity
    id: str
    op: Literal["insert", "update", "delete"]
    before: Image | UnsetType = UNSET
    after: Image | UnsetType = UNSET


class BlockShape(Shape):
    cause: CauseShape
    changes: list[ChangeShape]


class ChangesAnswer(BlockShape):
    next_page_token: str | UnsetType = UNSET


class FeedAnswer(Shape):
    blocks: list[BlockShape]
    next_page_token: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    caught_up: bool | UnsetType = UNSET


class DiffAnswer(Shape):
    from_graph_manifest_version: int
    to_graph_manifest_version: int
    schema: list[Json]
    changes: list[Json] | UnsetType = UNSET
    stats: Json | UnsetType = UNSET
    next_page_token: str | UnsetType = UNSET


class HistoryAnswer(Shape):
    events: list[Json]
    next_page_token: str | UnsetType = UNSET


class BlameAnswer(Shape):
    properties: list[Json]


class Dataset(Shape):
    entity_kind: Literal["node", "edge"]
    type_name: str
    dataset_path: str
    published_dataset_version: int
    native_dataset_branch: str | None
    entity_count: int


class SnapshotAnswer(Shape):
    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    graph_commit_id: str
    datasets: list[Dataset]


class SchemaSource(Shape):
    schema_source: str


class SchemaPlanned(Shape):
    uri: str
    step_count: int
    supported: bool
    steps: list[Json]


class SchemaApplied(SchemaPlanned, kw_only=True):
    applied: bool
    graph_manifest_version: int | UnsetType = UNSET
    graph_commit_id: str | UnsetType = UNSET
    purge_pending: bool | UnsetType = UNSET


class TagShape(Shape):
    name: str
    graph_commit_id: str
    graph_manifest_version: int
    created_at: int
    actor_id: str | None
    message: str | None


class TagList(Shape):
    tags: list[TagShape]


class UndoAnswer(Shape):
    commit: CommitShape | None


class BlobReceipt(Shape):
    selector: Json
    branch: str
    kind: str | None
    size: int | None
    etag: str | None
    actor_id: str | None
    commit: CommitShape | None


class StoredQueryList(Shape):
    queries: list[Json]


class AnalysisAnswer(Shape):
    algorithm: str
    commit_id: str
    nodes: int
    edges: int
    sweeps: int
    converged: bool
    statistics: Json
    top: list[Json]
    commit: CommitShape | None
