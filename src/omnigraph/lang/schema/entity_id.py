"""Ids of entities and tuples of unique values, computed from stored values.

A value has one spelling, however the input wrote it: the spelling is computed from the stored
value, never from the input text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from omnigraph.errors import InvalidValue
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.model.types import Stored


def entity_id(node: NodeType, values: Mapping[str, Stored | None]) -> str | None:
    """The id that the key of ``node`` gives to these stored values; None without a key.

    One member: its spelling. Several: a compact JSON array of their spellings, in the order in
    which the properties first appeared.
    """
    members = node.key_properties
    if not members:
        return None
    spelled = [_spell(node, name, values.get(name)) for name in members]
    if len(spelled) == 1:
        return spelled[0]
    return json.dumps(spelled, ensure_ascii=False, separators=(",", ":"))


def unique_tuple(
    owner: NodeType | EdgeType, columns: Sequence[str], values: Mapping[str, Stored | None]
) -> tuple[str, ...] | None:
    """The tuple that must be unique for one constraint; None if a member is null."""
    spelled: list[str] = []
    for name in columns:
        value = values.get(name)
        if value is None:
            return None
        declared = owner.properties.get(name)
        spelled.append(declared.type.spell(value) if declared else str(value))
    return tuple(spelled)


def _spell(node: NodeType, name: str, value: Stored | None) -> str:
    if value is None:
        raise InvalidValue(f"the key property `{name}` of {node.key} has no value")
    return node.properties[name].type.spell(value)
