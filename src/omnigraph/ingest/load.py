"""The interface of a load, which every engine implements, and its values.

A load is read, perhaps checked, committed and closed. Each step returns the value that the next
one needs: ``Load.read`` a ``LoadInput``, ``LoadInput.commit`` a ``LoadResult`` (ADR 28). One load
is one commit, also when the input is empty; a load that fails has written nothing and reports
everything that is wrong with its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, get_args

from omnigraph.catalog.rows import Commit
from omnigraph.errors import InvalidInput
from omnigraph.ingest.sources import LoadFormat
from omnigraph.prepare.committer import Attempt, Committer, Outcome, WriteOptions

LoadMode = Literal["append", "merge", "upsert", "overwrite"]
MODES: Final[tuple[str, ...]] = get_args(LoadMode)

LoadSource = Any
"""A path, a glob, bytes, a table (Arrow, pandas, polars, …), an iterable of records, or a mapping
of types to those."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is.

    ``phase`` is ``engine``, ``read``, ``check`` or ``done``. Of a load that is divided into tasks
    it is the name of a job, and ``tasks`` and ``tasks_done`` count its tasks.
    """

    phase: str
    bytes_read: int
    rows: int
    tasks: int = 0
    tasks_done: int = 0
    message: str = ""
    """In the phase ``engine``: which engine was chosen, and why."""


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """What to load and how to read it."""

    source: LoadSource
    mode: LoadMode
    type_name: str | None = None
    columns: Mapping[str, str] | None = None
    format: LoadFormat | None = None
    strict: bool = True
    progress: Callable[[Progress], None] | None = None
    quarantine: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInput(
                f"{self.mode!r} is not a load mode", remedy=f"Use one of {', '.join(MODES)}."
            )


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did: records by type name, and its commit.

    ``commit`` is None when an upsert changed nothing.
    """

    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: Commit | None
    base_branch: str | None = None
    branch_created: bool = False
    quarantined: int = 0
    values_nulled: int = 0
    """Stored values that a merge set to null, because the input did not give them."""
    edges_repeated: int = 0
    """Edges that a merge added beside equal ones."""
    repeated: bool = field(default=False, compare=False)
    """Whether an earlier request with the same idempotency key made the commit."""
    rows_written: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Records by type key, for upkeep."""

    @classmethod
    def of(cls, branch: str, mode: str, outcome: Outcome[None]) -> LoadResult:
        result = outcome.result
        return cls(
            branch,
            mode,
            result["nodes"],
            result["edges"],
            outcome.commit,
            values_nulled=result.get("values_nulled", 0),
            edges_repeated=result.get("edges_repeated", 0),
            repeated=outcome.repeated,
            rows_written=outcome.rows_written,
        )

    @property
    def total(self) -> int:
        return sum(self.nodes.values()) + sum(self.edges.values())

    def to_json(self, uri: str | None = None) -> dict[str, Any]:
        """The wire form."""
        body: dict[str, Any] = {} if uri is None else {"uri": uri}
        return body | {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "nodes": _counts_json(self.nodes),
            "edges": _counts_json(self.edges),
            "total_entities": self.total,
            **{name: count for name, count in self._extra_counts() if count},
            "actor_id": None if self.commit is None else self.commit.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
        }

    def _extra_counts(self) -> list[tuple[str, int]]:
        return [
            ("quarantined", self.quarantined),
            ("values_nulled", self.values_nulled),
            ("edges_repeated", self.edges_repeated),
        ]


def counts_of(rows: Mapping[str, int], **extra: int) -> dict[str, Any]:
    """Records by type key, and other counts that are not zero, as ``LoadResult.of`` reads them."""
    counts: dict[str, Any] = {"nodes": {}, "edges": {}}
    for key, count in rows.items():
        kind, _, name = key.partition(":")
        counts[kind + "s"][name] = count
    return counts | {name: number for name, number in extra.items() if number}


def _counts_json(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": counts[name]} for name in sorted(counts)]


class LoadInput(Protocol):
    """The input of a load after it was read: correct record by record."""

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        """Raise what a commit on this state would raise, without making anything visible."""

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        """Make the load one commit on a branch."""


class Load(Protocol):
    """One load on some engine. ``close`` is called in any case."""

    def read(self) -> LoadInput:
        """Read all input; raises one error with everything that is wrong with single records."""

    def close(self) -> None:
        """Remove what the load left on its way."""
