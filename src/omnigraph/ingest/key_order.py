"""Ids that spell the members of a composite key in another order than this graph does.

Members are ordered by property identity: a renamed member keeps its position. A new graph with the
renamed schema has another order, and an export of the older graph spells ids and edge ends in the
older one. A load infers the one order that explains all ids of a type and translates them. If there
is no such order, or more than one, it reports an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import Report, Violation
from omnigraph.constraints.canonical import derive_ids
from omnigraph.lang.schema import AcceptedSchema, NodeType
from omnigraph.storage.lance.arrays import as_array

Order: TypeAlias = tuple[int, ...]
"""For each position in a given id, the position of that member in the ids of this graph."""

Orders: TypeAlias = Mapping[str, Order]
"""Orders by the type key of a node type."""

ORDERS_MAX: Final = 1_000
"""Candidate orders per key: seven members of equal value would allow five thousand."""


def possible_orders(node: NodeType, rows: pa.Table) -> frozenset[Order] | None:
    """The orders that explain every given id that differs from the derived one.

    None when no id differs or the key has one member; empty when no order explains all of them.
    """
    if len(node.key_properties) < 2:
        return None
    given = as_array(rows["id"])
    if given.null_count == len(given):
        return None
    derived = derive_ids(node, rows)
    other = pc.indices_nonzero(pc.fill_null(pc.not_equal(given, derived), False))
    if not len(other):
        return None
    found: frozenset[Order] | None = None
    for old, new in zip(
        given.take(other).to_pylist(), derived.take(other).to_pylist(), strict=True
    ):
        spelled, members = _members(old), _members(new) or []
        if spelled is None or sorted(spelled) != sorted(members):
            return frozenset()
        if found is None:
            found = frozenset(islice(_matching(spelled, members), ORDERS_MAX))
        else:
            found = frozenset(o for o in found if _explains(o, spelled, members))
        if not found:
            break
    return found


def settled_orders(
    schema: AcceptedSchema, found: Iterable[tuple[str, frozenset[Order]]], report: Report
) -> dict[str, Order]:
    """The order of each type, from the candidates of every part of an input.

    Reports types without exactly one order.
    """
    together: dict[str, frozenset[Order]] = {}
    for key, orders in found:
        together[key] = together.get(key, orders) & orders
    settled = {key: next(iter(orders)) for key, orders in together.items() if len(orders) == 1}
    for key in sorted(together.keys() - settled.keys()):
        owner = schema.type(key)
        names = ", ".join(owner.key_properties)
        problem = "in more than one order" if not together[key] else "in an ambiguous order"
        message = f"{owner.name}: the given ids spell the key ({names}) {problem}"
        report.add(Violation("key", message, key, None, "id"))
    return settled


def as_given(ids: pa.Array, order: Order) -> pa.Array:
    """Ids of this graph as an input with this order spells them."""
    inverse = tuple(order.index(place) for place in range(len(order)))
    return as_stored(ids, inverse)


def as_stored(ids: pa.Array | pa.ChunkedArray, order: Order) -> pa.Array:
    """Ids of an input with this order as this graph spells them; other texts stay."""
    return pa.array([_reordered(text, order) for text in ids.to_pylist()], type=pa.string())


def _reordered(text: str | None, order: Order) -> str | None:
    spelled = None if text is None else _members(text)
    if spelled is None or len(spelled) != len(order):
        return text
    members = [spelled[order.index(place)] for place in range(len(order))]
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def _members(text: str | None) -> list[str] | None:
    """The members of the id of a composite key; None for any other text."""
    if text is None or not text.startswith("["):
        return None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(found, list) and all(isinstance(item, str) for item in found)
    return found if whole else None


def _explains(order: Order, spelled: Sequence[str], members: Sequence[str]) -> bool:
    return len(order) == len(spelled) and all(
        spelled[at] == members[place] for at, place in enumerate(order)
    )


def _matching(spelled: Sequence[str], members: Sequence[str], begun: Order = ()) -> Iterator[Order]:
    """Every order that maps the given spelling to the members."""
    if len(begun) == len(spelled):
        yield begun
        return
    for place, member in enumerate(members):
        if place not in begun and member == spelled[len(begun)]:
            yield from _matching(spelled, members, (*begun, place))
