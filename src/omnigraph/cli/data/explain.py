"""``omnigraph explain``."""

from __future__ import annotations

from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import QuerySourceOption, QueryTextOption, query_source
from omnigraph.cli.frame import Call, command, single
from omnigraph.cli.output import Result
from omnigraph.cli.scope import direct_verb
from omnigraph.cli.texts import SchemaFileOption, schema_of
from omnigraph.engine.engine import ReadOptions
from omnigraph.lang.query import compile_query, explain_json
from omnigraph.lang.query import explain as explain_plan
from omnigraph.lang.query.plan.logical import WritePlan
from omnigraph.lang.schema import AcceptedSchema

app = single("Show how a query would be carried out.")


@command(app, direct_verb("explain", store=True))
def explain(
    call: Call,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which query of the text.", show_default=False),
    ] = None,
    query: QuerySourceOption = None,
    text: QueryTextOption = None,
    uri: Annotated[
        str | None,
        typer.Option("--uri", metavar="URI", help="The graph whose schema counts."),
    ] = None,
    schema: SchemaFileOption = None,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="Which branch.", show_default=False),
    ] = None,
) -> Result:
    """Show how a query would be carried out: on a graph with estimates, access and reasons.

    With a schema file instead of a graph: the logical plan, which is the same whatever the order of
    the clauses. To see what a query really did, run it with ``query --analyze``.
    """
    source, label = query_source(query, text)
    if schema is not None:
        accepted, _ = schema_of(call, uri, schema)
        return _logical(source, accepted, name, label)
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    accepted = graph.schema() if branch is None else graph.schema(branch)
    if isinstance(compile_query(source, accepted, name, file=label).plan, WritePlan):
        return _logical(source, accepted, name, label)
    found = graph.explain(source, name, branch, options=ReadOptions(file=label))
    return Result(found.to_json(), found.lines())


def _logical(text: str, schema: AcceptedSchema, name: str | None, file: str) -> Result:
    plan = compile_query(text, schema, name, file=file).plan
    return Result(explain_json(plan), explain_plan(plan).splitlines())
