"""An operation: everything that is declared about one method of one path.

Routing, the checks before a handler runs and the OpenAPI document are made from it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from omnigraph.server.auth.access import GraphAction

if TYPE_CHECKING:
    from omnigraph.server.http.answers import AnyAnswer
    from omnigraph.server.http.exchange import Exchange

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
ARROW: Final = "application/vnd.apache.arrow.stream"
BYTES: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream"

GRAPH_PREFIX: Final = "/graphs/{graph_id}"

Handler = Callable[["Exchange"], Awaitable["AnyAnswer"]]
Place = Literal["query", "header"]


@dataclass(frozen=True, slots=True)
class WireParameter:
    """A query parameter or a header."""

    name: str
    meaning: str
    place: Place = "query"
    required: bool = False
    repeated: bool = False
    kind: Literal["string", "integer", "boolean"] = "string"
    choices: tuple[str, ...] = ()
    low: int | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries. ``shape`` is the type of a JSON body."""

    shape: Any = None
    media: tuple[str, ...] = (JSON,)
    required: bool = True


@dataclass(frozen=True, slots=True)
class Success:
    """What an operation answers when it works."""

    meaning: str
    shape: Any = None
    media: tuple[str, ...] = (JSON,)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    operation_id: str
    tag: str
    summary: str
    handler: Handler
    action: GraphAction | None
    """What a policy is asked; None for what everybody may see."""
    successes: Mapping[int, Success]
    refusals: tuple[int, ...] = ()
    """Statuses of refusals besides those that every operation of its kind has."""
    parameters: tuple[WireParameter, ...] = ()
    body: Body | None = None
    writes: bool = False
    successor: str | None = None
    """The path below the graph that replaces a deprecated operation."""

    @property
    def about_a_graph(self) -> bool:
        return self.path.startswith(GRAPH_PREFIX)

    @property
    def statuses(self) -> tuple[int, ...]:
        """Every status that a response can have."""
        found = {*self.successes, *self.refusals, 400, 500, 503}
        if self.action is not None:
            found |= {401, 403}
        if self.about_a_graph:
            found |= {404, 408}
        if self.body is not None:
            found |= {408, 413, 415}
        if self.writes:
            found |= {409, 429}
        return tuple(sorted(found))


BRANCH: Final = WireParameter("branch", "The branch; `main` unless given.")
SNAPSHOT: Final = WireParameter("snapshot", "A commit, a tag or a time instead of a branch.")
IDEMPOTENCY: Final = WireParameter(
    "Idempotency-Key",
    "A repeated request with the same key and content gets the answer of the first one.",
    "header",
)
IF_COMMIT: Final = WireParameter(
    "Omnigraph-If-Graph-Commit",
    "The commit that must be the head of the branch.",
    "header",
    required=True,
)
TIMEOUT: Final = WireParameter(
    "Omnigraph-Timeout-Ms",
    "Milliseconds for the statement, at most those of the server.",
    "header",
    kind="integer",
    low=1,
)
