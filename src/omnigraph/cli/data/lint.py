"""``omnigraph lint``: check a file of queries against a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import UriArgument, read_text
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult
from omnigraph.cli.source_files import SchemaFileOption, schema_of
from omnigraph.errors import InvalidInput
from omnigraph.lang.query import SchemaOrigin, lint_queries
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.lang.syntax.source import Source

app = single("Check a file of queries against a schema.")


@command(app, direct_verb("lint", store=True))
def lint(
    call: Invocation,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="FILE", help="The file of queries (.gq).", show_default=False
        ),
    ] = None,
    uri: UriArgument = None,
    schema: SchemaFileOption = None,
) -> CommandResult:
    """Check every query of a file against a schema file or the schema of a graph.

    With --schema alone the schema file itself is checked.
    """
    if query is None and schema is None:
        raise InvalidInput(
            "there is nothing to check", remedy="Name a file with --query, --schema or both."
        )
    accepted, origin = schema_of(call, uri, schema)
    if query is None:
        return _schema_is_fine(accepted, origin)
    report = lint_queries(Source(query, read_text(Path(query), "query file")), accepted, origin)
    return CommandResult(
        report.to_json(),
        report.render().splitlines(),
        EXIT_OK if report.ok else EXIT_FAILURE,
    )


def _schema_is_fine(accepted: AcceptedSchema, origin: SchemaOrigin) -> CommandResult:
    """The report for a valid schema; an invalid one has raised before."""
    data: dict[str, Any] = {
        "status": "ok",
        "schema_source": origin.to_json(),
        "query_path": None,
        "queries_processed": 0,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [],
        "findings": [],
    }
    nodes, edges = len(accepted.nodes), len(accepted.edges)
    return CommandResult(data, [f"the schema is fine: {nodes} node types, {edges} edge types"])
