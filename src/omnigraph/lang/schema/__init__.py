"""The schema language: text to AST, AST to accepted schema, plans between two accepted schemas.

Reads no files and no tables.
"""

from omnigraph.lang.schema.accept import accept_schema, parse_schema
from omnigraph.lang.schema.catalog import (
    DST,
    SRC,
    AcceptedSchema,
    EdgeType,
    InterfaceType,
    NodeType,
)
from omnigraph.lang.schema.change.plan import PlanFacts, plan_schema
from omnigraph.lang.schema.change.steps import SchemaPlan, SchemaStep
from omnigraph.lang.schema.change.tighten import tightened
from omnigraph.lang.schema.change.undrop import with_undropped
from omnigraph.lang.schema.entity_id import entity_id, unique_tuple
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.parse.ast import SchemaFile
from omnigraph.lang.schema.parts import (
    Check,
    CustomAnnotation,
    EdgeCardinality,
    Embed,
    Origin,
    Property,
    Range,
    TableColumn,
)

__all__ = [
    "DST",
    "SRC",
    "AcceptedSchema",
    "Check",
    "CustomAnnotation",
    "EdgeCardinality",
    "EdgeType",
    "Embed",
    "InterfaceType",
    "NodeType",
    "Origin",
    "PlanFacts",
    "Property",
    "Range",
    "SchemaFile",
    "SchemaPlan",
    "SchemaStep",
    "TableColumn",
    "accept_schema",
    "entity_id",
    "format_schema",
    "parse_schema",
    "plan_schema",
    "tightened",
    "unique_tuple",
    "with_undropped",
]
