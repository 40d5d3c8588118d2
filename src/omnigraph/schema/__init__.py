"""The schema language: text to AST, AST to accepted schema, plans between two accepted schemas.

Pure code: no files, no tables, no pyarrow.
"""

from typing import TYPE_CHECKING

from omnigraph.lazy import on_first_use
from omnigraph.schema.catalog import (
    DST,
    SRC,
    AcceptedSchema,
    EdgeType,
    InterfaceType,
    NodeType,
)
from omnigraph.schema.entity_id import entity_id, unique_tuple
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

if TYPE_CHECKING:
    from omnigraph.schema.accept import accept_schema, parse_schema
    from omnigraph.schema.ast import SchemaFile
    from omnigraph.schema.format import format_schema
    from omnigraph.schema.plan import PlanFacts, plan_schema
    from omnigraph.schema.revive import with_revived
    from omnigraph.schema.steps import Plan, Step
    from omnigraph.schema.tighten import tightened

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

# Reading a graph needs its schema, but none of what makes schemas.
__getattr__ = on_first_use(
    __name__,
    {
        **dict.fromkeys(("accept_schema", "parse_schema"), "accept"),
        "SchemaFile": "ast",
        "format_schema": "format",
        **dict.fromkeys(("PlanFacts", "plan_schema"), "plan"),
        "with_revived": "revive",
        **dict.fromkeys(("Plan", "Step"), "steps"),
        "tightened": "tighten",
    },
)
