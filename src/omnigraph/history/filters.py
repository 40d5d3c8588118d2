"""Filters of changes: what a name may be, and how a filter is told apart from another."""

from __future__ import annotations

import hashlib
import json

from omnigraph.catalog.rows import Kind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import TypeNotFound
from omnigraph.lang.syntax import did_you_mean
from omnigraph.snapshots.diff import DiffFilter


def filter_digest(filter: DiffFilter) -> str:
    """The same for equal filters only; empty for one that lets everything through."""
    parts = [sorted(part) for part in (filter.kinds, filter.types, filter.ops)]
    if not any(parts):
        return ""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def require_known_types(state: ManifestState, filter: DiffFilter) -> None:
    """A misspelt type would silently never match. Types that are gone by now may be named."""
    if not filter.types:
        return
    known = {
        str(item["name"])
        for row in state.rows(Kind.SCHEMA)
        for part in ("nodes", "edges")
        for item in row.metadata[part]
    }
    for name in sorted(filter.types - known):
        hint = did_you_mean(name, known)
        raise TypeNotFound(f"there never was a type {name!r}" + (f"; {hint}" if hint else ""))
