"""Request values: what a call on the handle hands to a backend.

They hold plain values only, so that a backend in another process can take the same. Each checks the
types of its fields (lists of strings are checked where they become tuples); the backend checks what
the values mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.model import arguments


@dataclass(frozen=True, slots=True)
class StateRef:
    """A state of the graph: the head of a branch, a commit, tag or time, or a manifest version."""

    branch: str | None = None
    at: str | None = None
    version: int | None = None

    def __post_init__(self) -> None:
        arguments.optional_text("branch", self.branch)
        arguments.optional_text("at", self.at)
        arguments.optional_whole("version", self.version)


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Options of a commit: who writes, why, and what the branch must look like."""

    message: str | None = None
    actor: str | None = None
    metadata: Mapping[str, str] | None = None
    expected_head: str | None = None
    idempotency_key: str | None = None
    denied_types: frozenset[str] = frozenset()
    """Names of types that a policy does not let this write change."""

    def __post_init__(self) -> None:
        arguments.optional_text("message", self.message)
        arguments.optional_text("actor", self.actor)
        arguments.optional_mapping("metadata", self.metadata)
        arguments.optional_text("expected_head", self.expected_head)
        arguments.optional_text("idempotency_key", self.idempotency_key)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A load: its input, how to read the input, and the target branch."""

    source: Any
    mode: str
    branch: str
    from_: str | None = None
    type: str | None = None
    columns: Mapping[str, str] | None = None
    format: str | None = None
    strict: bool = True
    upkeep: bool = True
    engine: str | None = None
    quarantine: str | None = None

    def __post_init__(self) -> None:
        arguments.text("branch", self.branch)
        arguments.optional_text("from_", self.from_)
        arguments.optional_text("type", self.type)
        arguments.optional_mapping("columns", self.columns)
        arguments.truth("strict", self.strict)
        arguments.truth("upkeep", self.upkeep)
        arguments.optional_text("engine", self.engine)


@dataclass(frozen=True, slots=True)
class MergeDecisions:
    """How conflicts are decided: ``strategy`` for all types, ``by_type`` for single types,
    ``resolutions`` for single entities."""

    level: str = "property"
    strategy: str | None = None
    by_type: Mapping[str, str] | None = None
    resolutions: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        level: str,
        strategy: str | None,
        by_type: Mapping[str, str] | None,
        resolutions: Iterable[Mapping[str, Any]],
    ) -> MergeDecisions:
        """The decisions from the arguments of a call, checked."""
        for side in (arguments.optional_mapping("by_type", by_type) or {}).values():
            arguments.text("by_type", side)
        return cls(
            arguments.text("level", level),
            arguments.optional_text("strategy", strategy),
            by_type,
            arguments.mappings("resolutions", resolutions),
        )


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Which branch is merged into which, and how conflicts are resolved."""

    source: str
    target: str
    decisions: MergeDecisions
    dry_run: bool = False
    delete_branch: bool = False
    engine: str | None = None

    def __post_init__(self) -> None:
        arguments.text("source", self.source)
        arguments.text("target", self.target)
        arguments.truth("dry_run", self.dry_run)
        arguments.truth("delete_branch", self.delete_branch)
        arguments.optional_text("engine", self.engine)


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """Which entities are restored on a branch, and to which older state."""

    target: str
    only: Mapping[str, Collection[str] | None]
    branch: str

    def __post_init__(self) -> None:
        arguments.text("target", self.target)
        arguments.mapping("only", self.only)
        arguments.text("branch", self.branch)


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A new schema, and how existing entities are migrated.

    ``backfill`` gives existing entities a value of a new property (``Person.age``); ``compute``
    computes it from their other properties (``first + " " + last``). ``undrop`` names types and
    properties of the new schema that get back the data that was dropped under their names.
    """

    schema: str
    branch: str
    name: str = "<schema>"
    allow_data_loss: bool = False
    backfill: Mapping[str, Any] | None = None
    compute: Mapping[str, str] | None = None
    undrop: tuple[str, ...] = ()
    engine: str = "auto"

    def __post_init__(self) -> None:
        arguments.text("schema", self.schema)
        arguments.text("branch", self.branch)
        arguments.text("name", self.name)
        arguments.truth("allow_data_loss", self.allow_data_loss)
        arguments.optional_mapping("backfill", self.backfill)
        arguments.optional_mapping("compute", self.compute)
        arguments.text("engine", self.engine)


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes to show: kinds (``node``, ``edge``), type names, and ops."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    @classmethod
    def of(cls, kinds: Iterable[str], types: Iterable[str], ops: Iterable[str]) -> ChangeFilter:
        """The filter from the arguments of a call, checked."""
        return cls(
            arguments.texts("kinds", kinds),
            arguments.texts("types", types),
            arguments.texts("ops", ops),
        )


@dataclass(frozen=True, slots=True)
class CommitFilter:
    """Which commits of a branch to show: those that satisfy every given condition."""

    actor: str | None = None
    since: str | None = None
    until: str | None = None
    """Times in ISO 8601; ``since`` is included, ``until`` is not."""
    types: tuple[str, ...] = ()
    """Type names; the commit must have written to one of them."""
    message: str | None = None
    """A substring of the message, ignoring case."""

    def __post_init__(self) -> None:
        arguments.optional_text("actor", self.actor)
        arguments.optional_text("since", self.since)
        arguments.optional_text("until", self.until)
        arguments.optional_text("message", self.message)


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """Where a poll of the change feed begins: at most one field is set; none is ``start="now"``."""

    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None

    def __post_init__(self) -> None:
        arguments.optional_text("start", self.start)
        arguments.optional_text("cursor", self.cursor)
        arguments.optional_text("page_token", self.page_token)
        names = ("start", "cursor", "page_token")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidInput(
                f"{' and '.join(given)} exclude each other", remedy="Pass only one of them."
            )


@dataclass(frozen=True, slots=True)
class PageSize:
    """The limits of a page; None stands for the backend's default."""

    limit: int | None = None
    bytes_max: int | None = None

    def __post_init__(self) -> None:
        arguments.optional_whole("limit", self.limit)
        arguments.optional_whole("bytes_max", self.bytes_max)


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """A graph algorithm, the types that it reads, and its parameters."""

    algorithm: str
    nodes: tuple[str, ...] | None
    edges: tuple[str, ...] | None
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        arguments.text("algorithm", self.algorithm)


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Which vectors to compute, and the limits of the requests to the provider."""

    branch: str
    types: tuple[str, ...] | None = None
    reembed_all: bool = False
    commit_every: int | None = None
    batch: int = 64
    rate: float | None = None

    def __post_init__(self) -> None:
        arguments.text("branch", self.branch)
        arguments.truth("reembed_all", self.reembed_all)
        arguments.optional_whole("commit_every", self.commit_every)
        arguments.whole("batch", self.batch)
        arguments.optional_number("rate", self.rate)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Which state is written to which directory, in which format."""

    target: str
    state: StateRef
    format: str = "ndjson"
    types: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        arguments.text("format", self.format)


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """How the micro-batches of a streaming DataFrame are loaded."""

    mode: str
    query: str
    checkpoint: str
    branch: str
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        arguments.text("query", self.query)
        arguments.text("branch", self.branch)
        arguments.optional_mapping("columns", self.columns)
