"""The schema language: text to AST, AST to accepted schema, plans between two accepted schemas.

Pure code: no files, no tables, no pyarrow.
"""

from omnigraph.schema.accept import accept_schema, parse_schema
from omnigraph.schema.ast import SchemaFile
from omnigraph.schema.catalog import AcceptedSchema, EdgeType, InterfaceType, NodeType
from omnigraph.schema.parts import (
    Cardinality,
    Check,
    Column,
    CustomAnnotation,
    Embed,
    Origin,
    Property,
    Range,
)

__all__ = [
    "AcceptedSchema",
    "Cardinality",
    "Check",
    "Column",
    "CustomAnnotation",
    "EdgeType",
    "Embed",
    "InterfaceType",
    "NodeType",
    "Origin",
    "Property",
    "Range",
    "SchemaFile",
    "accept_schema",
    "parse_schema",
]
