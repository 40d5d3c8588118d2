"""The official client against our server: in this process, and over stdin and stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult
from tests.graphs import people_graph

from omnigraph import Graph
from omnigraph.mcp.access import McpAccess
from omnigraph.mcp.server import build_server


class Tools:
    """Calls tools, checks every answer against the schema of its tool."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.schemas: dict[str, dict[str, Any]] = {}

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a call that must work."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        answer = result.structured_content
        assert answer is not None
        assert json.loads(text_of(result)) == answer
        if not self.schemas:
            for listed in (await self.client.list_tools()).tools:
                self.schemas[listed.name] = listed.output_schema or {}
        jsonschema.validate(answer, self.schemas[tool])
        return answer

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, text_of(result)
        error: dict[str, Any] = json.loads(text_of(result))
        assert error.keys() == {"error", "status", "code", "requestId", "explanation", "body"}
        return error


def text_of(result: CallToolResult) -> str:
    """The text of an answer."""
    return result.content[0].text  # type: ignore[union-attr]


@asynccontextmanager
async def in_process(
    graph: Graph | dict[str, Graph], access: McpAccess | None = None
) -> AsyncIterator[Tools]:
    """A client of a server in this process."""
    graphs = graph if isinstance(graph, dict) else {"people": graph}
    async with Client(build_server(graphs, access or McpAccess())) as client:
        yield Tools(client)


@asynccontextmanager
async def over_stdio(where: Path, *flags: str) -> AsyncIterator[Tools]:
    """A client of ``omnigraph mcp`` in a process of its own."""
    program = str(Path(sys.executable).parent / "omnigraph")
    parameters = StdioServerParameters(command=program, args=["mcp", str(where), *flags])
    async with Client(stdio_client(parameters)) as client:
        yield Tools(client)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "people")


def run(test: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    """Run a test that is a coroutine."""
    anyio.run(partial(test, *arguments))
