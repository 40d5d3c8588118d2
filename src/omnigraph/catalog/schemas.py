"""Accepted schemas as manifest rows.

A row is named by the hash of the whole accepted schema, including the ids of types and properties.
A type that was dropped and added again has a new id, so the schema has another row although its
text is the same, and an old commit keeps its own schema.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from omnigraph.catalog.rows import Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CorruptData
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.lru import LruCache

SCHEMAS_MAX: Final = 64
"""Parsed schemas that a process caches: enough for a few versions of the schema of a few graphs."""
_schemas: LruCache[str, AcceptedSchema] = LruCache(SCHEMAS_MAX)


def schema_row(schema: AcceptedSchema) -> Row:
    """The row that holds a schema. Its hash is what heads and commits refer to."""
    return Row(f"schema:{schema_id(schema)}", RowKind.SCHEMA, schema.to_json())


def schema_id(schema: AcceptedSchema) -> str:
    """The hash of a schema, including the ids of its types and properties."""
    canonical = json.dumps(schema.to_json(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def type_keys(state: ManifestState, schema_hash: str) -> frozenset[str]:
    """The keys of the types of a schema; cheaper than loading it."""
    metadata = _row(state, schema_hash).metadata
    return frozenset(
        f"{kind}:{item['name']}" for kind in ("node", "edge") for item in metadata[f"{kind}s"]
    )


def load_schema(state: ManifestState, schema_hash: str) -> AcceptedSchema:
    """The schema that a head or commit refers to."""
    return AcceptedSchema.from_json(dict(_row(state, schema_hash).metadata))


def cached_schema(state: ManifestState, schema_hash: str) -> AcceptedSchema:
    """``load_schema``, cached by process."""
    found = _schemas.get(schema_hash)
    if found is None:
        found = load_schema(state, schema_hash)
        _schemas.put(schema_hash, found)
    return found


def _row(state: ManifestState, schema_hash: str) -> Row:
    row = state.row(f"schema:{schema_hash}")
    if row is None:
        raise CorruptData(f"the manifest refers to a schema it does not hold ({schema_hash})")
    return row
