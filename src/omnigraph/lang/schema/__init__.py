"""The schema language: text to AST, AST to accepted schema, plans between two accepted schemas.

Pure code: no files, no tables.
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
from omnigraph.lang.schema.change.revive import with_revived
from omnigraph.lang.schema.change.steps import Plan, Step
from omnigraph.lang.schema.change.tighten import tightened
from omnigraph.lang.schema.entity_id import entity_id, unique_tuple
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.parse.ast import SchemaFile
from omnigraph.lang.schema.parts import (
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
    "DST",
    "SRC",
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
    "Plan",
    "PlanFacts",
    "Property",
    "Range",
    "SchemaFile",
    "Step",
    "accept_schema",
    "entity_id",
    "format_schema",
    "parse_schema",
    "plan_schema",
    "tightened",
    "unique_tuple",
    "with_revived",
]
