"""Row mapping: from the ordinals of one table version to those of a later one.

Computed from the fragment lists and the row addresses in changed fragments, so that the cost
follows the change and not the table. Used to update derived structures incrementally; ``None``
means that a full rebuild is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.predicates.values import Ints
from omnigraph.storage.lance.row_addresses import ADDRESS
from omnigraph.storage.lance.row_delta import SCAN_SHARE, rows_at
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT, PinnedTable

_NONE: Final = np.array([], dtype=np.int32)
FRESH_SHARE: Final = 8
"""With more than one new row in this many, a full rebuild is as fast."""


@dataclass(frozen=True, slots=True)
class RowMapping:
    """``ordinals``: the new ordinal of every old row, -1 if it is gone; None if none has changed.

    ``moved``: the sorted new ordinals of replaced rows that are followed. ``fresh``: the ordinals
    of all rows written since.
    """

    ordinals: Ints | None
    moved: Ints
    fresh: Ints
    fragments: tuple[int, ...]
    """The fragments of the fresh rows, in order."""

    def map(self, ordinals: Ints) -> Ints:
        """The new ordinals of old ones; -1 stays."""
        if self.ordinals is None:
            return ordinals
        return np.where(ordinals >= 0, self.ordinals[ordinals], np.int32(-1)).astype(np.int32)


def row_mapping_between(old: PinnedTable, new: PinnedTable, *, follow: bool) -> RowMapping | None:
    """The mapping between two versions of one table; None when too much has changed.

    ``follow``: a replaced row is the same row at a new ordinal; otherwise the old row is gone and
    the new one is fresh.
    """
    before, after = _Layout.of(old), _Layout.of(new)
    shared = [f for f in before.starts if after.names.get(f) == before.names[f]]
    if shared != [f for f in after.starts if f in set(shared)]:
        return None
    added = tuple(f for f in after.starts if f not in set(shared))
    fresh = _ranges(after, added)
    if len(fresh) * FRESH_SHARE > after.rows:
        return None
    places = np.full(before.rows, -1, dtype=np.int32)
    lost = []
    for fragment in before.starts:
        first, count = before.starts[fragment], before.counts[fragment]
        if fragment not in shared:
            lost.append(_addresses(old, fragment))
        elif count == after.counts[fragment]:
            places[first : first + count] = np.arange(count) + after.starts[fragment]
        else:
            stored = _addresses(old, fragment)
            kept = _kept(stored, _addresses(new, fragment))
            places[first : first + count] = np.where(kept >= 0, kept + after.starts[fragment], -1)
            lost.append(stored[kept < 0])
    moved = fresh[:0]
    if follow and lost and added:
        moved = _replaced(old, new, np.concatenate(lost), places, added, fresh)
    unchanged = len(fresh) + before.rows == after.rows and not lost
    return RowMapping(None if unchanged else places, moved, fresh, added)


def share_files(old: PinnedTable, new: PinnedTable) -> bool:
    """Whether fragments of both versions consist of the same files, so that values are unchanged. A
    schema change may rewrite one property in a file of its own.
    """
    after = {about.files[0].path: about.files for about in new.fragments.values()}
    return all(
        [file.path for file in about.files]
        == [file.path for file in after.get(about.files[0].path, about.files)]
        for about in old.fragments.values()
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The fragments of one version in scan order: first ordinal and live rows of each."""

    starts: dict[int, int]
    counts: dict[int, int]
    names: dict[int, str]
    """The first file of each: a restore may reuse fragment ids, but never files."""
    rows: int

    @classmethod
    def of(cls, table: PinnedTable) -> _Layout:
        starts, counts, names, rows = {}, {}, {}, 0
        for fragment, about in table.fragments.items():
            starts[fragment] = rows
            counts[fragment] = about.physical_rows - about.num_deletions
            names[fragment] = about.files[0].path
            rows += counts[fragment]
        return cls(starts, counts, names, rows)


UNCHANGED: Final = RowMapping(None, _NONE, _NONE, ())


def _ranges(layout: _Layout, fragments: tuple[int, ...]) -> Ints:
    parts = [layout.starts[f] + np.arange(layout.counts[f], dtype=np.int32) for f in fragments]
    return np.concatenate(parts) if parts else np.array([], dtype=np.int32)


def _addresses(table: PinnedTable, fragment: int) -> Ints:
    found = table.scan([], with_row_address=True, fragment_ids=[fragment])
    return np.asarray(found["_rowaddr"].to_numpy())


def _kept(old: Ints, new: Ints) -> Ints:
    """The index of each old address among the new ones; -1 where it is gone."""
    if not len(new):
        return np.full(len(old), -1)
    at = np.searchsorted(new, old)
    at[at == len(new)] = 0
    return np.where(new[at] == old, at, -1)


def _replaced(
    old: PinnedTable,
    new: PinnedTable,
    lost: Ints,
    places: Ints,
    added: tuple[int, ...],
    fresh: Ints,
) -> Ints:
    """Set the new ordinals of replaced rows in ``places``; returns them sorted.

    ``lost``: the addresses of the old rows that are gone, in the order of their ordinals.
    """
    written = new.scan(["id"], fragment_ids=list(added))["id"].to_pylist()
    known = dict(zip(written, fresh.tolist(), strict=True))
    ids = _ids_at(old, lost)
    found = np.array([known.get(id, -1) for id in ids], dtype=np.int32)
    places[np.flatnonzero(places < 0)] = found
    return np.sort(found[found >= 0])


def _ids_at(table: PinnedTable, addresses: Ints) -> list[str]:
    """The ids of the rows at these addresses, in this order."""
    if not len(addresses):
        return []
    if len(addresses) * SCAN_SHARE > table.rows:
        fragments = np.unique(addresses >> np.uint64(FRAGMENT_SHIFT)).tolist()
        rows = table.scan(["id"], with_row_address=True, fragment_ids=fragments)
    else:
        rows = pa.concat_tables(rows_at(table, addresses, ["id"]))
    stored = np.asarray(rows[ADDRESS].to_numpy())
    order = np.argsort(stored)
    at = order[np.searchsorted(stored[order], addresses)]
    return list(rows["id"].take(pa.array(at)).to_pylist())


def read_fresh(new: PinnedTable, delta: RowMapping, columns: list[str]) -> pa.Table:
    """The fresh rows, in the order of their ordinals."""
    if not delta.fragments:
        return new.schema.empty_table().select(columns)
    return new.scan(columns, fragment_ids=list(delta.fragments))
