"""Validation and digests of change filters."""

from __future__ import annotations

import hashlib
import json

from omnigraph.catalog.rows import RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import TypeNotFound
from omnigraph.lang.syntax import did_you_mean
from omnigraph.snapshots.diff import DiffFilter


def filter_digest(filter: DiffFilter) -> str:
    """A digest that is equal for equal filters; empty for a filter that matches everything."""
    parts = [sorted(part) for part in (filter.kinds, filter.types, filter.ops)]
    if not any(parts):
        return ""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def require_known_types(state: ManifestState, filter: DiffFilter) -> None:
    """Refuse names that no type ever had: a misspelt name would match nothing."""
    if not filter.types:
        return
    known = {
        str(item["name"])
        for row in state.rows(RowKind.SCHEMA)
        for part in ("nodes", "edges")
        for item in row.metadata[part]
    }
    for name in sorted(filter.types - known):
        hint = did_you_mean(name, known)
        raise TypeNotFound(f"no schema has a type {name!r}" + (f"; {hint}" if hint else ""))
