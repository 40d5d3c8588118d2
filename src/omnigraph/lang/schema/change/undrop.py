"""Restores dropped types and properties, so that a new text can continue them.

A name that is declared again is something new, always. What was dropped is restored, with its
identity and its data, only if it is named explicitly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from omnigraph.lang.schema.catalog import AcceptedSchema, EdgeType, NodeType
from omnigraph.lang.schema.parts import Property


def with_undropped(
    accepted: AcceptedSchema,
    types: Iterable[NodeType | EdgeType],
    properties: Mapping[str, Iterable[Property]],
) -> AcceptedSchema:
    """The accepted schema with these types, and these properties by type key, in it again."""
    for item in types:
        accepted = accepted.with_type(item)
    for key, found in properties.items():
        owner = accepted.type(key)
        accepted = accepted.with_type(replace(owner, properties=_with(owner, found)))
    return accepted


def _with(owner: NodeType | EdgeType, found: Iterable[Property]) -> dict[str, Property]:
    return {**owner.properties, **{item.name: item for item in found}}
