"""From schema text to accepted schema: parse, resolve, identify."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.schema.catalog import AcceptedSchema
from omnigraph.lang.schema.identity import identify
from omnigraph.lang.schema.parse.ast import SchemaFile
from omnigraph.lang.schema.parse.parser import parse
from omnigraph.lang.schema.resolve import resolve
from omnigraph.lang.syntax import Diagnostics, Source


def parse_schema(text: str, name: str = "<schema>") -> SchemaFile:
    """The AST of a schema text; raises ``SourceError`` with every syntax error."""
    source = Source(name, text)
    diagnostics = Diagnostics(source)
    file = parse(source, diagnostics)
    diagnostics.raise_errors()
    return file


def accept_schema(
    text: str,
    *,
    name: str = "<schema>",
    previous: AcceptedSchema | None = None,
    mint: Callable[[], str],
) -> AcceptedSchema:
    """The schema of a text; raises ``SourceError`` with every error found in it.

    Types and properties of ``previous``, found by name or by ``@rename_from``, keep their ids.
    ``mint`` makes the ids of new ones; it is called only if the text has no error.
    """
    source = Source(name, text)
    diagnostics = Diagnostics(source)
    resolved = resolve(parse(source, diagnostics), diagnostics)
    diagnostics.raise_errors()
    resolved = identify(resolved, previous, mint, diagnostics)
    diagnostics.raise_errors()
    return AcceptedSchema(
        source=text,
        interfaces=resolved.interfaces,
        nodes=resolved.nodes,
        edges=resolved.edges,
        warnings=diagnostics.items,
    )
