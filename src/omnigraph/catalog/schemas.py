"""Accepted schemas as manifest rows.

A row is named by the hash of the whole accepted schema, identities included: two schemas of one
shape but with different lifetimes of their types are different rows, and an old commit keeps its
own.
"""

from __future__ import annotations

import hashlib
import json

from omnigraph.catalog.rows import Kind, Row
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CorruptData
from omnigraph.lang.schema import AcceptedSchema


def schema_row(schema: AcceptedSchema) -> Row:
    """The row that holds a schema. Its hash is what heads and commits refer to."""
    return Row(f"schema:{schema_id(schema)}", Kind.SCHEMA, schema.to_json())


def schema_id(schema: AcceptedSchema) -> str:
    """The name of a schema with all its identities."""
    canonical = json.dumps(schema.to_json(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def type_keys(state: ManifestState, schema_hash: str) -> frozenset[str]:
    """The keys of the types that a schema has; quicker than loading it."""
    metadata = _row(state, schema_hash).metadata
    return frozenset(
        f"{kind}:{item['name']}" for kind in ("node", "edge") for item in metadata[f"{kind}s"]
    )


def load_schema(state: ManifestState, schema_hash: str) -> AcceptedSchema:
    """The schema that a head or commit refers to."""
    return AcceptedSchema.from_json(dict(_row(state, schema_hash).metadata))


def _row(state: ManifestState, schema_hash: str) -> Row:
    row = state.row(f"schema:{schema_hash}")
    if row is None:
        raise CorruptData(f"the manifest refers to a schema it does not hold ({schema_hash})")
    return row
