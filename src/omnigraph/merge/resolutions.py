"""Resolutions: the caller's decisions about single entities of a merge.

A resolution names an entity and has ``take`` (``ours``, ``theirs``, ``base`` or ``delete``),
``properties`` with values to set, or both. ``take`` decides the properties in conflict, or the
whole entity if none is; with a list of names as ``properties`` it decides these. What no resolution
decides stays a conflict. A resolution applies even without a conflict, so that an orphaned edge can
be deleted by the merge. With a null ``entity_id`` it is about a type, or properties of it, that one
side dropped: ``delete`` accepts the drop.

An entry of a conflict report together with a ``take`` is a resolution.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from omnigraph.errors import InvalidInput, InvalidValue
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.merge.three_way import SIDE_OF, Choice, Settled, SideName
from omnigraph.prepare.entity_rows import Row, accept_value

_TAKES: Final[tuple[Choice, ...]] = ("ours", "theirs", "base", "delete")
_REMEDY: Final = (
    'Write {"entity_kind": "node", "type_name": "Person", "entity_id": "ana", "take": "theirs"}; '
    f"take is one of {', '.join(_TAKES)}, or give properties to set."
)
_MEMBERS: Final = frozenset(
    ("entity_kind", "type_name", "entity_id", "take", "properties", "kind", "message")
) | {"base", "ours", "theirs", "related", "depends_on"}


@dataclass(frozen=True, slots=True)
class EntityResolution:
    """The resolution of one entity."""

    take: Choice | None = None
    values: Row = field(default_factory=dict)
    picks: Mapping[str, SideName] = field(default_factory=dict)
    """Columns that are taken from one side."""

    @property
    def settled(self) -> Settled:
        return Settled(self.take, self.picks, frozenset(self.values))


Resolutions = Mapping[str, Mapping[str, EntityResolution]]
"""Resolutions by type key, then by id."""

Dropped = frozenset[tuple[str, str | None]]
"""Dropped types by key, and dropped properties, that are accepted although the other side changed
them."""


def read_resolutions(text: str) -> list[dict[str, Any]]:
    """The records of a file: a JSON array, an object with ``resolutions``, or NDJSON."""
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
) -> dict[str, dict[str, EntityResolution]]:
    """Resolutions by type key and id; raises on unknown members, types and values."""
    found: dict[str, dict[str, EntityResolution]] = {}
    for record in records:
        _require_known(record)
        if record.get("entity_id") is None and "entity_id" in record:
            continue  # about a type: see ``accept_dropped``
        key, id, resolution = _accept(schema, record)
        earlier = found.setdefault(key, {}).get(id)
        found[key][id] = resolution if earlier is None else _both(key, id, earlier, resolution)
    return found


def accept_dropped(records: Iterable[Mapping[str, Any]]) -> Dropped:
    """The dropped types and properties that the records accept."""
    found: set[tuple[str, str | None]] = set()
    for record in records:
        if "entity_id" not in record or record["entity_id"] is not None:
            continue
        if record.get("take") != "delete":
            raise InvalidInput(
                "a dropped type or property cannot be kept by a resolution",
                remedy="Take delete to accept the drop, or apply a schema with it to that side.",
            )
        key = f"{record.get('entity_kind')}:{record.get('type_name')}"
        found |= {(key, name) for name in record.get("properties") or (None,)}
    return frozenset(found)


def _both(key: str, id: str, one: EntityResolution, two: EntityResolution) -> EntityResolution:
    """Combines two records about different properties of one entity."""
    named = [{*found.values, *found.picks} for found in (one, two)]
    if (one.take and two.take) or not all(named) or named[0] & named[1]:
        raise InvalidInput(
            f"{key} {id!r} has two contradictory resolutions", remedy="Keep one of them."
        )
    return replace(
        one,
        take=one.take or two.take,
        values={**one.values, **two.values},
        picks={**one.picks, **two.picks},
    )


def _require_known(record: Mapping[str, Any]) -> None:
    strange = sorted(set(record) - _MEMBERS)
    if strange:
        raise InvalidInput(f"a resolution has no member {strange[0]!r}", remedy=_REMEDY)


def _accept(schema: AcceptedSchema, record: Mapping[str, Any]) -> tuple[str, str, EntityResolution]:
    id = record.get("entity_id")
    if not isinstance(id, str):
        raise InvalidInput("a resolution has no entity_id", remedy=_REMEDY)
    owner = schema.type(f"{record.get('entity_kind')}:{record.get('type_name')}")
    take, properties = record.get("take"), record.get("properties")
    if take is not None and take not in _TAKES:
        raise InvalidInput(f"take must not be {take!r}", remedy=_REMEDY)
    if isinstance(properties, list | tuple):
        if take is None:
            raise InvalidInput(f"the resolution of {id!r} has no take", remedy=_REMEDY)
        changeable = [name for name in properties if name not in owner.key_properties]
        columns = [_column(owner, name) for name in changeable]
        if take == "delete" or not columns:
            return owner.key, id, EntityResolution(take)
        return owner.key, id, EntityResolution(picks=dict.fromkeys(columns, SIDE_OF[take]))
    if properties is None:
        if take is None:
            raise InvalidInput(f"the resolution of {id!r} has no take", remedy=_REMEDY)
        return owner.key, id, EntityResolution(take)
    if not isinstance(properties, Mapping):
        raise InvalidInput(f"the properties of {id!r} are not an object", remedy=_REMEDY)
    if take in ("base", "delete"):
        raise InvalidInput(
            f"the resolution of {id!r} takes {take} and also sets properties",
            remedy="Give either take or properties.",
        )
    values = {_column(owner, name): value for name, value in properties.items()}
    return (
        owner.key,
        id,
        EntityResolution(take, {n: _value(owner, n, v) for n, v in values.items()}),
    )


def _column(owner: NodeType | EdgeType, name: str) -> str:
    """The column of a property, or of an end of an edge, that a resolution may decide."""
    if name in owner.key_properties:
        raise InvalidInput(f"{name} is part of the key of {owner.name} and cannot change")
    column = owner.column_of(name)
    if column == name and name not in owner.properties:
        accept_value(owner, name, None)  # raises: there is no such property
    return column


def _value(owner: NodeType | EdgeType, column: str, value: Any) -> Any:
    if column in owner.properties:
        return accept_value(owner, column, value)
    if not isinstance(value, str):
        raise InvalidValue(f"an end of {owner.name} is the id of a node, not {value!r}")
    return value
