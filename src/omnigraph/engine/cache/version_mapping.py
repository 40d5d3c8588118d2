"""Succession: how the rows of one version of a table became those of a later one.

Told from the lists of fragments and the addresses of rows in the few that changed, so the cost
follows the change and not the table. Used to bring derived structures up to date instead of making
them again; whoever gets ``None`` makes them again.
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
"""When more than one row in so many is new, making everything again is as quick."""


@dataclass(frozen=True, slots=True)
class Succession:
    """``places``: the new ordinal of every old row, -1 for one that is gone; None: all as before.

    Rows that were replaced and are followed have a new place: ``moved`` are those places, sorted.
    ``fresh`` are the places of all rows that were written since.
    """

    places: Ints | None
    moved: Ints
    fresh: Ints
    fragments: tuple[int, ...]
    """Where the fresh rows are stored, in their order."""

    def now(self, ordinals: Ints) -> Ints:
        """Old ordinals as new ones; -1 stays."""
        if self.places is None:
            return ordinals
        return np.where(ordinals >= 0, self.places[ordinals], np.int32(-1)).astype(np.int32)


def succession_between(old: PinnedTable, new: PinnedTable, *, follow: bool) -> Succession | None:
    """What happened between two versions of one table; None when it is too much to follow.

    ``follow``: a row that was replaced is the same row at another place; otherwise it is gone, and
    the new one is just fresh.
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
    return Succession(None if unchanged else places, moved, fresh, added)


def share_files(old: PinnedTable, new: PinnedTable) -> bool:
    """Whether rows that both versions have are stored in the same files, with all their values: a
    change of the schema may write values of a property again, beside the others.
    """
    after = {about.files[0].path: about.files for about in new.fragments.values()}
    return all(
        [file.path for file in about.files]
        == [file.path for file in after.get(about.files[0].path, about.files)]
        for about in old.fragments.values()
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The fragments of one version in scan order: where each starts and how many rows live."""

    starts: dict[int, int]
    counts: dict[int, int]
    names: dict[int, str]
    """The first file of each: numbers of fragments can come back after a restore, files cannot."""
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


UNCHANGED: Final = Succession(None, _NONE, _NONE, ())


def _ranges(layout: _Layout, fragments: tuple[int, ...]) -> Ints:
    parts = [layout.starts[f] + np.arange(layout.counts[f], dtype=np.int32) for f in fragments]
    return np.concatenate(parts) if parts else np.array([], dtype=np.int32)


def _addresses(table: PinnedTable, fragment: int) -> Ints:
    found = table.scan([], with_row_address=True, fragment_ids=[fragment])
    return np.asarray(found["_rowaddr"].to_numpy())


def _kept(old: Ints, new: Ints) -> Ints:
    """The place of each old address among the new ones; -1 where it is gone."""
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
    """Give entities whose rows were written again their new places; returns those.

    ``lost`` are the addresses of the old rows that are gone, in the order of their ordinals.
    """
    written = new.scan(["id"], fragment_ids=list(added))["id"].to_pylist()
    known = dict(zip(written, fresh.tolist(), strict=True))
    ids = _ids_at(old, lost)
    found = np.array([known.get(id, -1) for id in ids], dtype=np.int32)
    places[np.flatnonzero(places < 0)] = found
    return np.sort(found[found >= 0])


def _ids_at(table: PinnedTable, addresses: Ints) -> list[str]:
    """The ids of the rows at these addresses, in their order."""
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


def read_fresh(new: PinnedTable, delta: Succession, columns: list[str]) -> pa.Table:
    """The fresh rows, in the order of their places."""
    if not delta.fragments:
        return new.schema.empty_table().select(columns)
    return new.scan(columns, fragment_ids=list(delta.fragments))
