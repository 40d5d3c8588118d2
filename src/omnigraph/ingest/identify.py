"""Assigns ids to loaded rows: derived from the key, given by the input, or generated.

A node with a key gets the id that the key derives; an id in the input must be the same. An input
may spell the members of composite keys in another order (``key_order``). The compatible mode also
accepts another spelling of a single key, and rewrites it in the ids of nodes and in the ends of
edges of the same input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import Report, Violation
from omnigraph.constraints.canonical import derive_ids
from omnigraph.constraints.edge_checks import ends
from omnigraph.constraints.row_checks import report_rows
from omnigraph.errors import InvalidValue
from omnigraph.ingest.key_order import (
    Order,
    Orders,
    as_given,
    as_stored,
    possible_orders,
    settled_orders,
)
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import new_ulids
from omnigraph.storage.lance.arrays import as_array


@dataclass(frozen=True, slots=True)
class Identified:
    """Rows with ids. ``fresh`` are the types whose ids were all generated here."""

    rows: dict[str, pa.Table] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)


def _fresh_ids(rows: pa.Table) -> pa.Array:
    return new_ulids(rows.num_rows)


def identify(
    schema: AcceptedSchema,
    rows: Mapping[str, pa.Table],
    report: Report,
    *,
    strict: bool,
    make: Callable[[pa.Table], pa.Array] = _fresh_ids,
    names_nodes: bool = False,
    orders: Orders | None = None,
) -> Identified:
    """Assign an id to every row; reports ids that contradict their key.

    ``make`` generates ids for rows without one. With ``names_nodes`` every node must have a key or
    an id. ``orders`` are the orders in which the input spells composite keys; without them they are
    inferred from these rows, which must then be the whole input.
    """
    result = Identified()
    if orders is None:
        orders = settled_orders(schema, _possible(schema, rows), report)
    rewritten: dict[str, dict[str, str]] = {}
    for key, table in sorted(rows.items(), reverse=True):  # nodes first: edges follow their ids
        owner = schema.type(key)
        if owner.key_properties:
            assert isinstance(owner, NodeType)
            table = _keyed(owner, table, report, strict, rewritten, orders.get(key))
        else:
            if isinstance(owner, EdgeType) and orders:
                table = _in_order(owner, table, orders)
            if isinstance(owner, EdgeType) and rewritten:
                table = _follow(owner, table, rewritten)
            if names_nodes and isinstance(owner, NodeType) and table["id"].null_count:
                problem = f"{owner.name} has no key: an upserted node needs an id"
                unnamed = table["id"].is_null()
                report_rows(report, owner, table, "key", "id", unnamed, problem)
            if table["id"].null_count == table.num_rows:
                result.fresh.add(key)
            table = _set(table, "id", _filled(table, make))
        result.rows[key] = table
    return result


def _keyed(
    owner: NodeType,
    table: pa.Table,
    report: Report,
    strict: bool,
    rewritten: dict[str, dict[str, str]],
    order: Order | None,
) -> pa.Table:
    given, derived = as_array(table["id"]), derive_ids(owner, table)
    table = _set(table, "id", derived)
    expected = derived if order is None else as_given(derived, order)
    other = pc.fill_null(pc.not_equal(given, expected), False)
    if not pc.any(other).as_py():
        return table
    if not strict:
        other = _rewrite(owner, table, given, other, report, rewritten)
    if pc.any(other).as_py():
        problem = "given, and the key gives another id"
        report_rows(report, owner, _set(table, "id", given), "key", "id", other, problem)
    return table


def _possible(
    schema: AcceptedSchema, rows: Mapping[str, pa.Table]
) -> Iterator[tuple[str, frozenset[Order]]]:
    """The orders of composite keys that explain these rows, where some id has another order.

    Types with ids that no order explains are left out: those ids are reported row by row.
    """
    for key, table in rows.items():
        owner = schema.type(key)
        found = possible_orders(owner, table) if isinstance(owner, NodeType) else None
        if found:
            yield key, found


def _in_order(owner: EdgeType, table: pa.Table, orders: Orders) -> pa.Table:
    """Edges whose ends spell composite keys in the order of this graph."""
    for column, node_key in ends(owner):
        order = orders.get(node_key)
        if order is not None:
            table = _set(table, column, as_stored(table[column], order))
    return table


def _rewrite(
    owner: NodeType,
    table: pa.Table,
    given: pa.Array,
    other: Any,
    report: Report,
    rewritten: dict[str, dict[str, str]],
) -> Any:
    """Record other spellings of ids; returns a mask of the ids that do not spell their key."""
    names = rewritten.setdefault(owner.key, {})
    unknown = [False] * table.num_rows
    for at in pc.indices_nonzero(other).to_pylist():
        old, new = given[at].as_py(), table["id"][at].as_py()
        if not _spells(owner, old, new):
            unknown[at] = True
        elif names.setdefault(old, new) != new:
            message = f"{owner.name}: the id {old!r} stands for two nodes"
            place = report.place(table, at)
            report.add(Violation("key", message, owner.key, old, "id", *place))
    return pa.array(unknown)


def _spells(owner: NodeType, old: str, new: str) -> bool:
    """Whether an id is another spelling of the value of a single-property key."""
    if len(owner.key_properties) != 1:
        return False
    kind = owner.properties[owner.key_properties[0]].type
    for value in (old, _number(old)):
        try:
            if value is not None and kind.spell(kind.accept(value)) == new:
                return True
        except InvalidValue:
            continue
    return False


def _number(text: str) -> int | float | bool | None:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def _follow(owner: EdgeType, table: pa.Table, rewritten: dict[str, dict[str, str]]) -> pa.Table:
    """Edges whose ends use the rewritten ids of their nodes."""
    for column, node_key in ends(owner):
        names = rewritten.get(node_key)
        if names:
            moved = [names.get(end, end) for end in table[column].to_pylist()]
            table = _set(table, column, pa.array(moved, type=pa.string()))
    return table


def _filled(table: pa.Table, make: Callable[[pa.Table], pa.Array]) -> pa.Array:
    """The ids, with generated ones where none was given."""
    ids = as_array(table["id"])
    if not ids.null_count:
        return ids
    if ids.null_count == len(ids):
        return make(table)
    return pc.replace_with_mask(ids, ids.is_null(), make(table.filter(ids.is_null())))


def _set(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
