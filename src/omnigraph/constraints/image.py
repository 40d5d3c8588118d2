"""The image of a write: the inserted, updated and deleted entities of each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.lance.arrays import as_array


@dataclass(frozen=True)
class TypeImage:
    """The change of one type.

    ``rows`` are the written entities in input order. ``removed`` are deleted ids. ``replaces_all``
    makes the rows the whole population. ``must_be_new`` forbids stored ids; ``fresh`` means that
    all ids were just generated, so that none can be stored. ``last_wins`` allows an id to occur
    twice; otherwise that is a violation.

    ``undecided`` are ids with several possible outcomes, as in a merge conflict: ``rows`` has one
    row per outcome, and ``uncertain`` are those that may also be deleted. The checks then report
    violations in any combination of outcomes.
    """

    rows: pa.Table | None = None
    removed: pa.Array | None = None
    replaces_all: bool = False
    must_be_new: bool = False
    fresh: bool = False
    last_wins: bool = True
    undecided: pa.Array | None = None
    uncertain: pa.Array | None = None

    @cached_property
    def final(self) -> pa.Table | None:
        """The rows that will be stored: the last per id, or all outcomes of undecided ids."""
        if self.rows is None or self.undecided is not None:
            return self.rows
        return last_per_id(self.rows)

    @cached_property
    def written_ids(self) -> pa.Array:
        return empty_ids() if self.final is None else as_array(self.final["id"])

    @cached_property
    def superseded(self) -> pa.Array:
        """Ids whose stored rows are replaced or deleted."""
        if self.removed is None:
            return self.written_ids
        return pa.concat_arrays([self.written_ids, as_array(self.removed)])

    def unsettled(self, columns: Sequence[str]) -> set[str]:
        """Undecided ids that may be deleted, or whose values in these columns are undecided.

        A violation of a rule over these columns by any other id does not depend on a decision.
        """
        if self.undecided is None or self.rows is None:
            return set()
        found = set() if self.uncertain is None else set(self.uncertain.to_pylist())
        rows = self.rows.filter(pc.is_in(self.rows["id"], value_set=self.undecided))
        first: dict[str, str] = {}
        values = zip(*(rows[name].to_pylist() for name in columns), strict=True)
        for id, value in zip(rows["id"].to_pylist(), values, strict=True):
            if first.setdefault(id, repr(value)) != repr(value):
                found.add(id)
        return found


Image = Mapping[str, TypeImage]
"""By type key."""


class StoredTypes(Protocol):
    """Reads the committed state for the checks."""

    def count(self, key: str) -> int:
        """The number of entities of a type."""

    def columns(self, key: str, columns: Sequence[str]) -> pa.Table:
        """Whole columns of a type."""

    def matching(self, key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The entities of a type whose ``column`` has one of these values."""


def present(stored: StoredTypes, key: str, ids: pa.Array) -> pa.Array:
    """The ids that are stored."""
    if not len(ids) or not stored.count(key):
        return empty_ids()
    return as_array(stored.matching(key, "id", ids, ["id"])["id"])


def without(ids: pa.Array, gone: pa.Array | None) -> pa.Array:
    """The ids that are not in ``gone``."""
    if gone is None or not len(gone) or not len(ids):
        return ids
    return ids.filter(pc.invert(pc.is_in(ids, value_set=gone)))


def last_per_id(rows: pa.Table) -> pa.Table:
    """The last row of every id, in the order of those rows."""
    if pc.count_distinct(rows["id"]).as_py() == rows.num_rows:
        return rows
    numbered = pa.table({"id": rows["id"], "at": pa.array(np.arange(rows.num_rows))})
    last = numbered.group_by("id").aggregate([("at", "max")])["at_max"]
    return rows.take(last.take(pc.sort_indices(last)))


def empty_ids() -> pa.Array:
    return pa.array([], type=pa.string())
