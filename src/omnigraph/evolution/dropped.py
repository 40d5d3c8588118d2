"""Finds dropped types and properties whose data still exists, to restore them (undrop).

There is no list of dropped declarations. They are found in the schemas of earlier commits; the data
of a property is in a hidden column of its table, and that of a type in its last published version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from omnigraph.catalog.history.commits import iterate_commits
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import RowKind, TablePin
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import NotFound
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, Property, with_undropped
from omnigraph.storage.lance.staging.columns import hidden_name


@dataclass(frozen=True, slots=True)
class Revived:
    """Restored types with their last pins, and restored properties by type key."""

    types: list[NodeType | EdgeType] = field(default_factory=list)
    pins: dict[str, TablePin] = field(default_factory=dict)
    properties: dict[str, list[Property]] = field(default_factory=dict)

    def added_to(self, accepted: AcceptedSchema) -> AcceptedSchema:
        return with_undropped(accepted, self.types, self.properties)

    def by_identity(self) -> dict[str, NodeType | EdgeType | Property]:
        found: dict[str, NodeType | EdgeType | Property] = {t.type_id: t for t in self.types}
        for items in self.properties.values():
            found |= {item.property_id: item for item in items}
        return found


def find_dropped(
    repository: Repository, state: ManifestState, accepted: AcceptedSchema, names: Iterable[str]
) -> Revived:
    """The dropped declarations with these names (``Person``, ``node:Person``, ``Person.email``)."""
    revived = Revived()
    for name in names:
        owner, _, property_name = name.partition(".")
        if property_name:
            _find_property(repository, state, accepted, (owner, property_name), revived)
        else:
            _find_type(repository, state, accepted, owner, revived)
    return revived


def _find_type(
    repository: Repository,
    state: ManifestState,
    accepted: AcceptedSchema,
    name: str,
    revived: Revived,
) -> None:
    living = {item.incarnation for item in accepted.types()}
    for schema in _earlier_schemas(state):
        for item in schema.types():
            if name in (item.name, item.key) and item.incarnation not in living:
                revived.types.append(item)
                revived.pins[item.key] = _last_pin(repository, state, item)
                return
    raise _nothing(name)


def _last_pin(repository: Repository, state: ManifestState, item: NodeType | EdgeType) -> TablePin:
    timeline = state.timeline
    rows = timeline.types[item.key].rows
    for row in reversed(rows):
        pin = timeline.read_pins([row])[row]
        if pin.incarnation == item.incarnation:
            if not repository.tables.has_version(pin.ref):
                break  # removed by a hard drop or a cleanup
            return pin
    raise _nothing(item.name)


def _find_property(
    repository: Repository,
    state: ManifestState,
    accepted: AcceptedSchema,
    name: tuple[str, str],
    revived: Revived,
) -> None:
    owner = next((t for t in accepted.types() if name[0] in (t.name, t.key)), None)
    if owner is None:
        raise _nothing(".".join(name))
    living = {item.property_id for item in owner.properties.values()}
    kept = set(repository.tables.open(state.pins[owner.key].ref).dataset.schema.names)
    for schema in _earlier_schemas(state):
        before = next((t for t in schema.types() if t.incarnation == owner.incarnation), None)
        found = None if before is None else before.properties.get(name[1])
        if found is None or found.property_id in living:
            continue
        if hidden_name(found.property_id) in kept:
            revived.properties.setdefault(owner.key, []).append(found)
            return
    raise _nothing(".".join(name))


def _earlier_schemas(state: ManifestState) -> Iterator[AcceptedSchema]:
    """The distinct schemas of a branch's commits, newest first."""
    there = sum(1 for _ in state.rows(RowKind.SCHEMA))
    seen: set[str] = set()
    for commit in iterate_commits(state):
        if commit.schema_hash is None or commit.schema_hash in seen:
            continue
        seen.add(commit.schema_hash)
        yield load_schema(state, commit.schema_hash)
        if len(seen) == there:
            return


def _nothing(name: str) -> NotFound:
    return NotFound(
        f"no dropped type or property {name!r} of this branch can be restored",
        remedy="Name a type, or a property as Type.property, that a schema change dropped without"
        " --allow-data-loss.",
    )
