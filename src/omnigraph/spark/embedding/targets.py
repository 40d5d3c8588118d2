"""Which properties have vectors to be made, and which nodes had their text changed since.

A finished run leaves in its commit which state the texts were read from. A vector is stale when the
text has changed since that state and nobody has given the node another vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.rows import Commit
from omnigraph.engine.engine import Reader
from omnigraph.errors import HistoryReclaimed, InvalidInput, NotFound
from omnigraph.lang.schema import AcceptedSchema, NodeType
from omnigraph.snapshots.entity_delta import State, paired_types, type_delta
from omnigraph.storage.lance.lookup import membership

KIND: Final = "embed"
TARGETS: Final = "embed"
TEXTS_OF: Final = "embed_texts_of"
"""What a commit of a finished run says: the properties, and the commit its texts were read from."""


@dataclass(frozen=True, slots=True)
class Target:
    """One vector property and the text it is made of."""

    property: str
    source: str
    dimensions: int
    model: str | None
    nullable: bool


@dataclass(frozen=True, slots=True)
class TypeTargets:
    """A node type with vectors to be made."""

    owner: NodeType
    targets: tuple[Target, ...]

    @property
    def names(self) -> list[str]:
        return [f"{self.owner.name}.{target.property}" for target in self.targets]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(target.source for target in self.targets))


def find_targets(schema: AcceptedSchema, types: Sequence[str] | None) -> list[TypeTargets]:
    """The types that have ``@embed`` properties: all, or those named."""
    names = set(types or ())
    for name in sorted(names - set(schema.nodes)):
        schema.type(f"node:{name}")  # raises what is known about it
    found = []
    for name, node in sorted(schema.nodes.items()):
        targets = tuple(
            Target(declared.name, declared.embed.source, declared.type.dimensions or 0,
                   declared.embed.model, declared.type.nullable)
            for declared in node.properties.values()
            if declared.embed is not None
        )  # fmt: skip
        if targets and (types is None or name in names):
            found.append(TypeTargets(node, targets))
        elif name in names:
            raise InvalidInput(
                f"{name} has no property with @embed",
                remedy="Say in the schema which text a vector is made of: `v: Vector(8)? "
                '@embed("text")`.',
            )
    return found


Stale = dict[str, set[str]]
"""Nodes by the property whose vector is stale."""


def find_stale(
    reader: Reader, new: State, wanted: TypeTargets, find: Callable[[str], Commit | None]
) -> Stale:
    """Nodes whose text has changed since their vector was made.

    ``find`` gives the commit of the last finished run for a property.
    """
    stale: Stale = {}
    for target, name in zip(wanted.targets, wanted.names, strict=True):
        commit = find(name)
        if commit is None:
            continue
        try:
            old, made = reader.state(commit.metadata[TEXTS_OF]), reader.state(commit.commit_id)
        except (NotFound, HistoryReclaimed):
            continue  # what cannot be compared any more is not called stale
        ids = _changed(reader, old, made, new, wanted.owner, target)
        if ids:
            stale[target.property] = ids
    return stale


def _changed(
    reader: Reader, old: State, made: State, new: State, owner: NodeType, target: Target
) -> set[str]:
    keys = next(p for p in paired_types(old.snapshot, new.snapshot) if p[1] == owner.key)
    if keys[0] is None or owner.key not in made.snapshot.pins:
        return set()
    delta = type_delta(reader.repository, old, new, keys)
    named = {new_name: old_name for old_name, new_name in delta.shared}
    source = named.get(target.source)
    found: set[str] = set()
    for rows in delta.changes():
        if rows.before is None or rows.after is None or source is None:
            continue
        both = [id for id, op in zip(rows.ids, rows.ops, strict=True) if op == "update"]
        before, after = _of(rows.before, both), _of(rows.after, both)
        differs = pc.fill_null(pc.not_equal(before[source], after[target.source]), True)
        found |= _untouched(reader, made, owner.key, target, after.filter(differs))
    return found


def _of(rows: pa.Table, ids: list[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["id"], value_set=pa.array(ids, pa.string())))


def _untouched(reader: Reader, made: State, key: str, target: Target, rows: pa.Table) -> set[str]:
    """Those whose vector is the one that the last run made or found."""
    if not rows.num_rows:
        return set()
    table = reader.repository.tables.open(made.snapshot.pin(key).ref)
    if target.property not in table.schema.names:
        return set()
    then = table.scan(["id", target.property], membership("id", rows["id"].combine_chunks()))
    known: dict[str, Any] = dict(
        zip(then["id"].to_pylist(), then[target.property].to_pylist(), strict=True)
    )
    pairs = zip(rows["id"].to_pylist(), rows[target.property].to_pylist(), strict=True)
    return {id for id, vector in pairs if vector is not None and known.get(id) == vector}
