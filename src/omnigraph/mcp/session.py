"""The graphs that an MCP server serves, and what its client may do with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph import Graph
from omnigraph.errors import GraphNotServed, InvalidInput
from omnigraph.mcp.access import McpAccess


@dataclass(frozen=True, slots=True)
class McpSession:
    """What every tool gets: graphs by id, and the access of the client."""

    graphs: Mapping[str, Graph]
    access: McpAccess

    def graph(self, graph_id: str | None) -> Graph:
        """The graph that a call names; without a name, the only one."""
        if graph_id is None:
            if len(self.graphs) == 1:
                return next(iter(self.graphs.values()))
            raise InvalidInput(
                "several graphs are served and the call names none",
                remedy=f"Pass `graph`: one of {', '.join(sorted(self.graphs))}.",
            )
        if graph_id not in self.graphs:
            raise GraphNotServed(
                f"there is no graph {graph_id!r} here",
                remedy=f"Use one of {', '.join(sorted(self.graphs))}.",
            )
        return self.graphs[graph_id]
