"""The graphs that a server serves, by id.

The content is replaced as a whole; a request keeps the graph that it looked up.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from omnigraph import Graph, Settings
from omnigraph import open as open_graph
from omnigraph.errors import (
    GraphNotServed,
    GraphUnavailable,
    InvalidInput,
    OmnigraphError,
    StorageFailure,
)

log = logging.getLogger("omnigraph.server.registry")

OPENED_TOGETHER: Final = 4
RESERVED_IDS: Final = frozenset({"policies", "healthz", "openapi", "graphs"})
_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,64}")

GraphState = Literal["ready", "blocked"]


@dataclass(frozen=True, slots=True)
class GraphAddress:
    """A graph to serve: its id in URLs, and where it is."""

    id: str
    uri: str

    @classmethod
    def parse(cls, text: str) -> GraphAddress:
        """``ID=URI``, or a URI whose last part (without ``.omni``) is the id."""
        id, equals, uri = text.partition("=")
        if not equals or "/" in id or ":" in id:
            uri = text
            id = text.rstrip("/").rpartition("/")[2].removesuffix(".omni")
        if not is_graph_id(id):
            raise InvalidInput(
                f"{id!r} cannot be the id of a graph",
                remedy="Name the graph as ID=PATH; an id has letters, digits and hyphens.",
            )
        return cls(id, uri)


def is_graph_id(text: str) -> bool:
    """Whether a text can be the id of a graph in a URL."""
    return _ID.fullmatch(text) is not None and text not in RESERVED_IDS


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """A graph of the registry; ``handle`` is None when it could not be opened."""

    id: str
    uri: str
    handle: Graph | None
    failure: str | None = None

    @property
    def state(self) -> GraphState:
        return "blocked" if self.handle is None else "ready"

    @property
    def graph(self) -> Graph:
        """The handle of a graph that can be served."""
        if self.handle is None:
            raise GraphUnavailable(
                f"graph '{self.id}' cannot be served",
                details={"graph_id": self.id, "failure": self.failure},
            )
        return self.handle


class GraphRegistry:
    """The served graphs by id."""

    def __init__(self, graphs: Iterable[ServedGraph] = ()) -> None:
        self._graphs: Mapping[str, ServedGraph] = {}
        self.replace(graphs)

    def replace(self, graphs: Iterable[ServedGraph]) -> None:
        """Serve these graphs from now on, and no others."""
        self._graphs = MappingProxyType({item.id: item for item in graphs})

    def find(self, id: str) -> ServedGraph:
        """The graph of an id.

        Raises:
            InvalidInput: No graph can have this id.
            GraphNotServed: There is no such graph.
        """
        found = self._graphs.get(id)
        if found is not None:
            return found
        if not is_graph_id(id):
            raise InvalidInput(
                f"{id[:80]!r} is not the id of a graph",
                remedy="An id has 1 to 64 letters, digits and hyphens.",
            )
        raise GraphNotServed(f"graph '{id}' not found", details={"graph_id": id})

    def all(self) -> list[ServedGraph]:
        """Every graph, in order of ids."""
        return [self._graphs[id] for id in sorted(self._graphs)]


def open_graphs(
    sources: Sequence[GraphAddress], settings: Settings, *, read_only: bool, require_all: bool
) -> list[ServedGraph]:
    """Open graphs, some at a time; one that fails is blocked.

    Raises:
        InvalidInput: Two graphs have one id, or none could be opened (or one, where all must).
    """
    ids = [source.id for source in sources]
    for id in ids:
        if ids.count(id) > 1:
            raise InvalidInput(
                f"two graphs have the id {id!r}", remedy="Name one of them as ID=PATH."
            )
    # The actor of a write is the caller's; without one, none is recorded.
    anonymous = replace(settings, actor=None)

    def opened(source: GraphAddress) -> ServedGraph:
        try:
            handle = open_graph(source.uri, read_only=read_only, settings=anonymous)
        except OmnigraphError as problem:
            log.error("graph %s cannot be served: %s", source.id, problem.message)
            return ServedGraph(source.id, source.uri, None, "open_failed")
        return ServedGraph(source.id, handle.uri, handle)

    with ThreadPoolExecutor(OPENED_TOGETHER) as pool:
        graphs = list(pool.map(opened, sources))
    failed = [item.id for item in graphs if item.handle is None]
    if failed and (require_all or len(failed) == len(graphs)):
        raise StorageFailure(
            f"these graphs cannot be opened: {', '.join(failed)}",
            remedy="Check the locations; `omnigraph fsck` says what is wrong with a graph.",
        )
    return graphs
