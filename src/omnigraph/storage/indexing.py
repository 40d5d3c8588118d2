"""Staging of indexes: files and a prepared transaction, never a new version.

An index of a name is replaced by removing the segments it had, in the same transaction: segments
that are not removed would answer twice. Reads never depend on an index being there or current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.storage.lance_errors import translated
from omnigraph.storage.staging import stage_maintenance
from omnigraph.storage.tables import PinnedTable, StagedWrite

INDEX_SEGMENTS_MAX = 8  # more segments than this are merged by building the index anew


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index to build: its column, Lance's kind, and what else Lance wants to know."""

    column: str
    kind: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.column}_{self.kind.lower()}"


def stage_indexes(
    table: PinnedTable, specs: Sequence[IndexSpec], properties: Mapping[str, str]
) -> StagedWrite:
    """Build several indexes over all rows as one step, each replacing the one of its name."""
    from lance import LanceOperation, Transaction

    built, replaced = [], []
    for spec in specs:
        with translated(f"building an index on {table.ref.path}"):
            index = table.dataset.create_index_uncommitted(
                spec.column,
                spec.kind,
                name=spec.name,
                fragment_ids=list(table.fragments),
                replace=True,
                **dict(spec.options),
            )
            # Without this step an inverted index commits and then fails every search.
            built.append(table.dataset.merge_existing_index_segments([index]))
        replaced += _segments(table, spec.name)
    operation = LanceOperation.CreateIndex(built, replaced)
    return stage_maintenance(table, "index_build", Transaction, operation, properties)


def stage_lookup_indexes(
    table: PinnedTable, columns: Sequence[str], properties: Mapping[str, str]
) -> StagedWrite | None:
    """Bring the look-up indexes of these columns up to date; None when they are.

    Only fragments that no segment covers are indexed, so the cost follows what was written. When
    an index has gathered many segments, it is built anew.
    """
    from lance import LanceOperation, Transaction

    built, superseded = [], []
    with translated(f"building indexes on {table.ref.path}"):
        known = {index.name: index.segments for index in table.dataset.describe_indices()}
        for column in columns:
            name = lookup_index(column)
            segments = known.get(name, [])
            covered = {fragment for s in segments for fragment in s.fragment_ids}
            fragments = [f for f in table.fragments if f not in covered]
            if not fragments:
                continue
            if len(segments) >= INDEX_SEGMENTS_MAX:
                fragments = list(table.fragments)
                superseded += _segments(table, name)
            made = table.dataset.create_index_uncommitted(
                column, "BTREE", name=name, fragment_ids=fragments, replace=True
            )
            built.append(table.dataset.merge_existing_index_segments([made]))
    if not built:
        return None
    operation = LanceOperation.CreateIndex(built, superseded)
    return stage_maintenance(table, "index_build", Transaction, operation, properties)


def lookup_index(column: str) -> str:
    """The name of the index that serves look-ups by a column."""
    return IndexSpec(column, "BTREE").name


def stage_drop_index(
    table: PinnedTable, name: str, properties: Mapping[str, str]
) -> StagedWrite | None:
    """Remove an index; None when there is none of that name."""
    from lance import LanceOperation, Transaction

    segments = _segments(table, name)
    if not segments:
        return None
    operation = LanceOperation.CreateIndex([], segments)
    return stage_maintenance(table, "index_drop", Transaction, operation, properties)


def _segments(table: PinnedTable, name: str) -> list[Any]:
    """The stored segments of an index, in the form that a transaction removes them by."""
    import lance

    return [
        lance.Index(
            uuid=segment.uuid,
            name=name,
            fields=index.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for index in table.dataset.describe_indices()
        if index.name == name
        for segment in index.segments
    ]
