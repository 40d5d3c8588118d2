"""``omnigraph explain``: show the plan of a query."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph import ReadOptions
from omnigraph.cli.addressing import direct_verb
from omnigraph.cli.arguments import QuerySourceOption, QueryTextOption, query_source
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult
from omnigraph.cli.source_files import SchemaFileOption, schema_of
from omnigraph.lang.query import compile_query, explain_json
from omnigraph.lang.query import explain as explain_plan
from omnigraph.lang.query.plan.logical import WritePlan
from omnigraph.lang.schema import AcceptedSchema

app = single("Show the plan of a query.")


@command(app, direct_verb("explain", store=True))
def explain(
    call: Invocation,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The query, if there are several.", show_default=False),
    ] = None,
    query: QuerySourceOption = None,
    text: QueryTextOption = None,
    uri: Annotated[
        str | None,
        typer.Option("--uri", metavar="URI", help="The graph whose schema is used."),
    ] = None,
    schema: SchemaFileOption = None,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="The branch.", show_default=False),
    ] = None,
) -> CommandResult:
    """Show the plan of a query on a graph, with estimates, access paths and their reasons.

    With a schema file instead of a graph, show the logical plan, which does not depend on the order
    of the clauses. For measured times run ``query --analyze``.
    """
    source, label = query_source(query, text)
    if schema is not None:
        accepted, _ = schema_of(call, uri, schema)
        return _logical(source, accepted, name, label)
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    accepted = graph.schema() if branch is None else graph.schema(branch)
    if isinstance(compile_query(source, accepted, name, file=label).plan, WritePlan):
        return _logical(source, accepted, name, label)
    found = graph.explain(source, name, branch, options=ReadOptions(file=label))
    return CommandResult(found.to_json(), found.lines())


def _logical(text: str, schema: AcceptedSchema, name: str | None, file: str) -> CommandResult:
    plan = compile_query(text, schema, name, file=file).plan
    return CommandResult(explain_json(plan), explain_plan(plan).splitlines())
