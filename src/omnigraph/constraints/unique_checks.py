"""Constraints across entities of one type: ids, keys and ``@unique``.

Two input records with the same tuple conflict; so do an input record and a stored entity with
another id. A tuple with a null never conflicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.canonical import shown_value, tuple_keys
from omnigraph.constraints.image import StoredTypes, TypeImage, present
from omnigraph.constraints.violations import Report, Rule, Violation
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.storage.lance.arrays import as_array


def check_ids(
    owner: NodeType | EdgeType, image: TypeImage, stored: StoredTypes, report: Report
) -> None:
    """No id occurs twice in the input, and none is stored where only new ids are allowed."""
    if image.rows is None or image.fresh:
        return
    rows = image.rows
    if not image.last_wins:
        what = "@key" if owner.key_properties else "id"

        def repeated(at: int, first: int) -> str:
            id = rows["id"][at].as_py()
            where = _also(report, rows, first)
            return f"{what} violation on {owner.name}: {id!r} is given twice{where}"

        _report(report, "key", owner, rows, _repeats(rows["id"]), repeated)
    if image.must_be_new and not image.replaces_all:
        ids = present(stored, owner.key, image.written_ids)
        taken = pc.indices_nonzero(pc.is_in(rows["id"], value_set=ids)).to_pylist()

        def exists(at: int, _: int) -> str:
            id = rows["id"][at].as_py()
            return f"a {owner.kind} of type {owner.name} with id {id!r} exists already"

        _report(report, "exists", owner, rows, [(at, at) for at in taken], exists)


def check_unique(
    owner: NodeType | EdgeType, image: TypeImage, stored: StoredTypes, report: Report
) -> None:
    """Every ``@unique`` group of the type, in the order of the catalog."""
    if image.rows is None or not image.rows.num_rows:
        return
    for columns in owner.unique:
        unsettled = image.unsettled(columns)
        rows = image.rows
        if image.undecided is not None:
            rows = _once_per_id(owner, columns, rows, unsettled)
        check_repeated(owner, columns, rows, report, unsettled)
        if not image.replaces_all and stored.count(owner.key):
            assert image.final is not None
            final = image.final if image.undecided is None else rows
            check_taken(owner, columns, final, image.superseded, stored, report, unsettled)


def _once_per_id(
    owner: NodeType | EdgeType, columns: tuple[str, ...], rows: pa.Table, unsettled: set[str]
) -> pa.Table:
    """The rows without repeated pairs of id and tuple, which are outcomes of one entity.

    Decided rows come first, so that undecided ones are compared with them.
    """
    ids, keys = rows["id"].to_pylist(), tuple_keys(owner, columns, rows).to_pylist()
    first = {pair: at for at, pair in reversed(list(enumerate(zip(ids, keys, strict=True))))}
    return rows.take(sorted(first.values(), key=lambda at: (ids[at] in unsettled, at)))


def check_repeated(
    owner: NodeType | EdgeType,
    columns: tuple[str, ...],
    rows: pa.Table,
    report: Report,
    unsettled: Collection[str] = (),
) -> None:
    """Report tuples that two written rows share."""
    title, name = _title(owner, columns)

    def repeated(at: int, first: int) -> str:
        other, where = rows["id"][first].as_py(), _also(report, rows, first)
        return f"{title}: {_shown(owner, rows, columns, at)} is also in {other!r}{where}"

    pairs = _repeats(tuple_keys(owner, columns, rows))
    others = CollidingRows(columns, rows["id"], unsettled)
    _report(report, "unique", owner, rows, pairs, repeated, name, others)


def _title(owner: NodeType | EdgeType, columns: tuple[str, ...]) -> tuple[str, str]:
    name = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    return f"@unique violation on {owner.name}.{name}", name


def check_taken(
    owner: NodeType | EdgeType,
    columns: tuple[str, ...],
    final: pa.Table,
    superseded: pa.Array,
    stored: StoredTypes,
    report: Report,
    unsettled: Collection[str] = (),
) -> None:
    """Report tuples that are taken by a stored entity that the write does not touch."""
    title, name = _title(owner, columns)
    keys = tuple_keys(owner, columns, final)
    values = as_array(final[columns[0]]).filter(pc.is_valid(keys)).unique()
    if not len(values):
        return
    wanted = list(dict.fromkeys(("id", *columns)))
    found = stored.matching(owner.key, columns[0], values, wanted)
    found = found.filter(pc.invert(pc.is_in(found["id"], value_set=superseded)))
    taken = tuple_keys(owner, columns, found)
    positions = pc.index_in(keys, value_set=taken, skip_nulls=True)
    marked = pc.indices_nonzero(pc.is_valid(positions))
    pairs = list(zip(marked.to_pylist(), positions.take(marked).to_pylist(), strict=True))

    def taken_by(at: int, other: int) -> str:
        shown, id = _shown(owner, final, columns, at), found["id"][other].as_py()
        return f"{title}: {shown} is also in {id!r}"

    others = CollidingRows(columns, found["id"], unsettled)
    _report(report, "unique", owner, final, pairs, taken_by, name, others)


def _repeats(keys: Any) -> list[tuple[int, int]]:
    """Rows whose key occurred before, each with the first row of that key."""
    keys = as_array(keys)
    if pc.count_distinct(keys).as_py() == len(keys) - keys.null_count:
        return []
    distinct = keys.drop_null().unique()
    first = pc.index_in(distinct, value_set=keys)
    slots = pc.index_in(keys, value_set=distinct)
    origin = first.take(slots)
    here = pa.array(range(len(keys)), type=pa.int32())
    repeated = pc.indices_nonzero(pc.fill_null(pc.not_equal(origin, here), False))
    return [(at, origin[at].as_py()) for at in repeated.to_pylist()]


@dataclass(frozen=True, slots=True)
class CollidingRows:
    """The rows that a violated tuple collides with, by position."""

    columns: tuple[str, ...]
    ids: pa.ChunkedArray
    unsettled: Collection[str]


def _report(
    report: Report,
    rule: Rule,
    owner: NodeType | EdgeType,
    rows: pa.Table,
    pairs: Sequence[tuple[int, int]],
    message: Callable[[int, int], str],
    property: str | None = None,
    others: CollidingRows | None = None,
) -> None:
    """Report rows, each with the row it collides with."""

    def violation(at: int, other: int) -> Violation:
        id, place = rows["id"][at].as_py(), report.place(rows, at)
        found = Violation(rule, message(at, other), owner.key, id, property, *place)
        if others is None:
            return found
        related = (owner.key, others.ids[other].as_py())
        both = ((owner.key, id), related)
        depends = tuple(entity for entity in both if entity[1] in others.unsettled)
        return replace(found, columns=others.columns, related=(related,), depends_on=depends)

    report.extend((violation(at, other) for at, other in pairs), len(pairs))


def _shown(owner: NodeType | EdgeType, rows: pa.Table, columns: tuple[str, ...], at: int) -> str:
    values = [shown_value(owner, rows, name, at) for name in columns]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _also(report: Report, rows: pa.Table, first: int) -> str:
    file, line = report.place(rows, first)
    return "" if line is None else f" (first in {file}:{line})"
