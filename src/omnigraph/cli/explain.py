"""``omnigraph explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.arguments import read_text
from omnigraph.cli.frame import Call, command, noun
from omnigraph.cli.output import Result
from omnigraph.cli.scope import direct_verb
from omnigraph.cli.texts import QueryFileOption, SchemaFileOption, schema_of
from omnigraph.query import compile_query, explain_json
from omnigraph.query import explain as explain_plan

app = noun("Show how a query would be carried out.", single=True)


@command(app, direct_verb("explain", store=True))
def explain(
    call: Call,
    query: QueryFileOption,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which query of the file.", show_default=False),
    ] = None,
    uri: Annotated[
        str | None,
        typer.Option("--uri", metavar="URI", help="The graph whose schema counts."),
    ] = None,
    schema: SchemaFileOption = None,
) -> Result:
    """Show the logical plan of a query: the same whatever the order of its clauses."""
    accepted, _ = schema_of(call, uri, schema)
    text = read_text(Path(query), "query file")
    compiled = compile_query(text, accepted, name, file=query)
    return Result(explain_json(compiled.plan), explain_plan(compiled.plan).splitlines())
