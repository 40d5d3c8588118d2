"""Decisions a person took about single entities of a merge.

A resolution names an entity and says what becomes of it: ``ours``, ``theirs``, ``base`` (as it was
before both), ``delete``, or ``properties`` with values to set. It counts whether or not there was a
conflict, so an edge that would hang in the air can be deleted on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from omnigraph.errors import InvalidInput
from omnigraph.schema import AcceptedSchema
from omnigraph.write.rows import Row, accept_value

Take = Literal["ours", "theirs", "base", "delete"]
_TAKES: Final = ("ours", "theirs", "base", "delete")
_REMEDY: Final = (
    'Write {"entity_kind": "node", "type_name": "Person", "entity_id": "ana", "take": "theirs"}; '
    f"take is one of {', '.join(_TAKES)}, or give properties to set."
)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What becomes of one entity."""

    take: Take | None = None
    values: Row = field(default_factory=dict)


Resolutions = Mapping[str, Mapping[str, Resolution]]
"""By type key, then by id."""


def read_resolutions(text: str) -> list[dict[str, Any]]:
    """The records of a file: a JSON array, an object with ``resolutions``, or one per line."""
    try:
        if text.lstrip()[:1] == "[":
            records = json.loads(text)
        else:
            lines = [json.loads(line) for line in text.splitlines() if line.strip()]
            whole = len(lines) == 1 and isinstance(lines[0], dict) and "resolutions" in lines[0]
            records = lines[0]["resolutions"] if whole else lines
    except ValueError as error:
        raise InvalidInput(f"the resolutions are not JSON: {error}", remedy=_REMEDY) from None
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise InvalidInput("the resolutions are not a list of objects", remedy=_REMEDY)
    return records


def accept_resolutions(
    schema: AcceptedSchema, records: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, Resolution]]:
    """Checked against a schema; unknown members, types and values are refused."""
    found: dict[str, dict[str, Resolution]] = {}
    for record in records:
        key, id, resolution = _accept(schema, record)
        if id in found.setdefault(key, {}):
            raise InvalidInput(f"{key} {id!r} is resolved twice", remedy="Keep one of them.")
        found[key][id] = resolution
    return found


def _accept(schema: AcceptedSchema, record: Mapping[str, Any]) -> tuple[str, str, Resolution]:
    known = {"entity_kind", "type_name", "entity_id", "take", "properties", "kind", "message"}
    strange = sorted(set(record) - known)
    if strange:
        raise InvalidInput(f"a resolution has no member {strange[0]!r}", remedy=_REMEDY)
    id = record.get("entity_id")
    if not isinstance(id, str):
        raise InvalidInput("a resolution names no entity", remedy=_REMEDY)
    owner = schema.type(f"{record.get('entity_kind')}:{record.get('type_name')}")
    take, values = record.get("take"), record.get("properties")
    if (take is None) == (values is None):
        raise InvalidInput(f"the resolution of {id!r} takes no side, or two", remedy=_REMEDY)
    if take is not None:
        if take not in _TAKES:
            raise InvalidInput(f"{take!r} cannot be taken", remedy=_REMEDY)
        return owner.key, id, Resolution(cast("Take", take))
    if not isinstance(values, Mapping):
        raise InvalidInput(f"the properties of {id!r} are not an object", remedy=_REMEDY)
    fixed = sorted(set(values) & set(owner.key_properties))
    if fixed:
        raise InvalidInput(f"{fixed[0]} is part of the key of {owner.name} and cannot change")
    accepted = {name: accept_value(owner, name, value) for name, value in values.items()}
    return owner.key, id, Resolution(None, accepted)
