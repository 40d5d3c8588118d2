"""``omnigraph lint``."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cli.arguments import UriArgument, read_text
from omnigraph.cli.frame import Call, Noun, command
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, Result
from omnigraph.cli.scope import direct_verb
from omnigraph.cli.texts import QueryFileOption, SchemaFileOption, schema_of
from omnigraph.query import lint_queries
from omnigraph.syntax.source import Source

app = Noun("Check a file of queries against a schema.", single=True)


@command(app, direct_verb("lint", store=True))
def lint(
    call: Call, query: QueryFileOption, uri: UriArgument = None, schema: SchemaFileOption = None
) -> Result:
    """Check every query of a file against a schema file or the schema of a graph."""
    accepted, origin = schema_of(call, uri, schema)
    report = lint_queries(Source(query, read_text(Path(query), "query file")), accepted, origin)
    return Result(
        report.to_json(),
        report.render().splitlines(),
        EXIT_OK if report.ok else EXIT_FAILURE,
    )
