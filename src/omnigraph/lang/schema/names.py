"""Reserved property names."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.schema.catalog import ID, EdgeType
from omnigraph.lang.schema.parse.ast import TypeKind

RESERVED_EVERYWHERE: Final = frozenset(
    (
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    )
)
"""Names of columns that the table format adds. Only these exact names are reserved."""

RESERVED_ON_EDGES: Final = frozenset((*EdgeType.endpoints, *EdgeType.endpoints.values()))
"""Columns of the ends of an edge, and the fields by which mutations and loads give them."""


def reserved_problem(name: str, kind: TypeKind) -> tuple[str, str] | None:
    """The code and the reason why a property cannot have this name; None if it can."""
    if name in RESERVED_EVERYWHERE:
        return "S14", "reserved for the storage"
    if name == ID:
        return "S15", "reserved: every entity has an `id` already"
    if kind == "edge" and name in RESERVED_ON_EDGES:
        return "S15", "reserved: it names an endpoint of the edge"
    return None
