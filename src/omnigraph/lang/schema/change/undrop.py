"""Restores dropped types and properties in an accepted schema.

Declaring the name of a dropped type or property again makes a new one. A dropped one is restored,
with its id and its data, only if the caller names it explicitly.
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
    """The accepted schema with these types added, and these properties, given by type key."""
    for item in types:
        accepted = accepted.with_type(item)
    for key, found in properties.items():
        owner = accepted.type(key)
        accepted = accepted.with_type(replace(owner, properties=_with(owner, found)))
    return accepted


def _with(owner: NodeType | EdgeType, found: Iterable[Property]) -> dict[str, Property]:
    return {**owner.properties, **{item.name: item for item in found}}
