"""Reads and compiles schema and query files; messages show their paths."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import read_text
from omnigraph.cli.commands import Invocation
from omnigraph.errors import InvalidInput
from omnigraph.lang.query import SchemaOrigin
from omnigraph.lang.schema import AcceptedSchema, accept_schema
from omnigraph.model.ids import new_ulid

QueryFileOption = Annotated[
    str, typer.Option("--query", metavar="FILE", help="The file of queries (.gq).")
]
SchemaFileOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="A schema file (.pg), instead of the schema of a graph.",
        show_default=False,
    ),
]


def read_schema(path: str, previous: AcceptedSchema | None = None) -> AcceptedSchema:
    """A schema file, checked."""
    text = read_text(Path(path), "schema")
    return accept_schema(text, name=path, previous=previous, mint=new_ulid)


def schema_of(
    call: Invocation, uri: str | None, path: str | None
) -> tuple[AcceptedSchema, SchemaOrigin]:
    """The schema of a file or of a graph, whichever the command line names."""
    if path is not None:
        if uri is not None or call.flags.store is not None:
            raise InvalidInput(
                "both a schema file and a graph are given", remedy="Keep one of them."
            )
        return read_schema(path), SchemaOrigin("file", path)
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    return graph.schema(), SchemaOrigin("graph", graph.uri)
