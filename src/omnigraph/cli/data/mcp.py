"""``omnigraph mcp``."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult
from omnigraph.errors import NotAvailable

app = single("Serve a graph to a language model as MCP tools, on stdin and stdout.")


@command(app, data_verb("mcp"))
def mcp(
    call: Invocation,
    uri: UriArgument = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer no tool that writes.")
    ] = False,
    branch_prefix: Annotated[
        str | None,
        typer.Option(
            "--branch-prefix",
            metavar="PREFIX",
            help="Write only to branches whose names begin so, such as agents/one/.",
            show_default=False,
        ),
    ] = None,
    rows_max: Annotated[
        int | None,
        typer.Option(
            "--max-rows", metavar="N", help="Rows in one answer (200).", show_default=False
        ),
    ] = None,
    bytes_max: Annotated[
        int | None,
        typer.Option(
            "--max-bytes", metavar="N", help="Bytes in one answer (100000).", show_default=False
        ),
    ] = None,
    timeout_ms: Annotated[
        int | None,
        typer.Option(
            "--timeout-ms",
            metavar="MS",
            help="Give a read up after so long (30000).",
            show_default=False,
        ),
    ] = None,
) -> CommandResult:
    """Serve a graph to a language model as MCP tools, on stdin and stdout."""
    try:
        from omnigraph.mcp.access import AnswerLimits, McpAccess
        from omnigraph.mcp.server import build_server
    except ImportError as error:
        raise NotAvailable(
            f"the MCP server needs a package that is not installed: {error.name}",
            remedy='Run `pip install "omnigraph[mcp]"`.',
        ) from error
    standard = AnswerLimits()
    limits = AnswerLimits(
        standard.rows_max if rows_max is None else rows_max,
        standard.bytes_max if bytes_max is None else bytes_max,
        standard.timeout_ms if timeout_ms is None else timeout_ms,
    )
    access = McpAccess(read_only, branch_prefix, call.actor, limits)
    graph = omnigraph.open(call.address(uri).uri, read_only=read_only, settings=call.settings)
    name = graph.uri.rstrip("/").rpartition("/")[2].removesuffix(".omni")
    build_server({name: graph}, access).run("stdio")
    return CommandResult(None, [])
