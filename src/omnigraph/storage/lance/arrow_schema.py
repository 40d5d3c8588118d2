"""The Arrow schema of a type's table."""

from __future__ import annotations

import lance
import pyarrow as pa

from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model.types import PropertyType

PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
PROPERTY_ID = "omnigraph:property_id"
TYPE_KEY = "omnigraph:type_key"


def table_schema(entity_type: NodeType | EdgeType) -> pa.Schema:
    """Columns as the catalog orders them: system columns, then properties by name."""
    return pa.schema(
        [column_field(item.name, item.type, item.property_id) for item in entity_type.columns()],
        metadata={TYPE_KEY: entity_type.key},
    )


def column_field(name: str, type_: PropertyType, property_id: str | None) -> pa.Field:
    """The Arrow field of one column."""
    if property_id is None:
        metadata = PRIMARY_KEY if name == "id" else None
        return pa.field(name, pa.string(), nullable=False, metadata=metadata)
    if type_.is_blob:
        blob = lance.blob_field(name, nullable=type_.nullable)
        return blob.with_metadata({**(blob.metadata or {}), PROPERTY_ID.encode(): property_id})
    return pa.field(
        name, type_.arrow_type(), nullable=type_.nullable, metadata={PROPERTY_ID: property_id}
    )
