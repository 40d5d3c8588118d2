"""The new constraints that stored entities must satisfy before a schema change."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.change.plan import is_narrower, is_stricter
from omnigraph.lang.schema.parts import Columns, EdgeCardinality, Property


def tightened(
    before: NodeType | EdgeType, after: NodeType | EdgeType
) -> NodeType | EdgeType | None:
    """The type with only its new constraints; None if there are none.

    It has only the properties that these constraints need, so that no others are read.
    """
    olds = {item.property_id: item for item in before.properties.values()}
    narrowed = {
        name
        for name, item in after.properties.items()
        if _is_narrowed(olds.get(item.property_id), item)
    }
    had = {frozenset(_ids(before, columns)) for columns in before.unique}
    unique = tuple(c for c in after.unique if frozenset(_ids(after, c)) not in had)
    used = narrowed.union(*unique)
    reduced: NodeType | EdgeType
    if isinstance(after, NodeType):
        assert isinstance(before, NodeType)
        reduced = _rules_of_node(before, after)
        used |= {item.property for item in reduced.ranges}
        used |= {item.property for item in reduced.checks}
        stricter = False
    else:
        assert isinstance(before, EdgeType)
        stricter = is_stricter(before.cardinality, after.cardinality)
        reduced = after if stricter else replace(after, cardinality=EdgeCardinality())
    if not used and not stricter:
        return None
    kept = {
        name: item if name in narrowed else _anything(item)
        for name, item in after.properties.items()
        if name in used
    }
    return replace(reduced, properties=kept, unique=unique, indexes=())


def _rules_of_node(before: NodeType, after: NodeType) -> NodeType:
    """The type with only its new ranges and checks, and without a key."""
    ranges = {(_ids(before, (item.property,))[0], item.low, item.high) for item in before.ranges}
    checks = {(_ids(before, (item.property,))[0], item.pattern) for item in before.checks}
    return replace(
        after,
        ranges=tuple(
            item
            for item in after.ranges
            if (_ids(after, (item.property,))[0], item.low, item.high) not in ranges
        ),
        checks=tuple(
            item
            for item in after.checks
            if (_ids(after, (item.property,))[0], item.pattern) not in checks
        ),
        key_columns=(),
        implements=(),
    )


def _is_narrowed(old: Property | None, new: Property) -> bool:
    if old is None:
        return not new.type.nullable
    return is_narrower(old.type, new.type)


def _anything(item: Property) -> Property:
    """The property made nullable and without enum: stored values already satisfy its type."""
    return replace(item, type=replace(item.type, nullable=True, enum=None))


def _ids(owner: NodeType | EdgeType, columns: Columns) -> list[str]:
    """The property ids of columns; ``src`` and ``dst`` stand for themselves."""
    return [owner.properties[n].property_id if n in owner.properties else n for n in columns]
