"""Builds an MCP server over graphs. The transport (stdio or HTTP) is the caller's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

import omnigraph
from omnigraph import Graph
from omnigraph.mcp.access import McpAccess
from omnigraph.mcp.calls import GraphTool, as_coroutine
from omnigraph.mcp.prompts import add_prompts
from omnigraph.mcp.resources import add_resources
from omnigraph.mcp.session import McpSession
from omnigraph.mcp.tools.branching import branch_tools
from omnigraph.mcp.tools.history import history_tools
from omnigraph.mcp.tools.reading import reading_tools
from omnigraph.mcp.tools.writing import writing_tools

INSTRUCTIONS: Final = (
    "Omnigraph is a versioned property graph. Read the schema before you query or write. Write on "
    "a branch of your own, look at its diff, and merge it or ask for a merge. An error says what "
    "is wrong and what to do: correct the call and repeat it. The resources below "
    "omnigraph://best-practices/ explain querying, writing and reviewing."
)


def build_server(graphs: Mapping[str, Graph], access: McpAccess) -> MCPServer:
    """The MCP server of some graphs for one kind of client.

    Args:
        graphs: The graphs to serve, by id.
        access: What a client may do, and how much an answer may hold.

    Returns:
        The server; ``run("stdio")`` or ``streamable_http_app()`` give it a transport.
    """
    session = McpSession(dict(graphs), access)
    server: MCPServer = MCPServer(
        "omnigraph",
        title="Omnigraph",
        instructions=INSTRUCTIONS,
        version=omnigraph.__version__,
        log_level="WARNING",
    )
    for tool in _tools(session):
        server.add_tool(
            as_coroutine(tool, access.limits.timeout_ms),
            name=tool.name,
            title=tool.title,
            annotations=ToolAnnotations(
                title=tool.title,
                read_only_hint=not tool.writes,
                destructive_hint=tool.destructive,
                idempotent_hint=tool.idempotent or not tool.writes,
                open_world_hint=False,
            ),
        )
    add_resources(server, session)
    add_prompts(server)
    return server


def _tools(session: McpSession) -> Iterator[GraphTool]:
    """The tools that this client is offered."""
    for group in (reading_tools, history_tools, branch_tools, writing_tools):
        for tool in group(session):
            if not (tool.writes and session.access.read_only):
                yield tool
