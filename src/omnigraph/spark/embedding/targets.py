"""The ``@embed`` properties of a schema, and the nodes whose vectors are stale.

The last commit of a run records the commit that its texts were read from. A vector is stale when
the text has changed since that commit and the vector has not.
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
"""Metadata of the last commit of a run: the properties, and the commit of its texts."""


@dataclass(frozen=True, slots=True)
class EmbedTarget:
    """A vector property and its source text property."""

    property: str
    source: str
    dimensions: int
    model: str | None
    nullable: bool


@dataclass(frozen=True, slots=True)
class TypeTargets:
    """A node type and its ``@embed`` properties."""

    owner: NodeType
    targets: tuple[EmbedTarget, ...]

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
        schema.type(f"node:{name}")  # raises TypeNotFound
    found = []
    for name, node in sorted(schema.nodes.items()):
        targets = tuple(
            EmbedTarget(declared.name, declared.embed.source, declared.type.dimensions or 0,
                   declared.embed.model, declared.type.nullable)
            for declared in node.properties.values()
            if declared.embed is not None
        )  # fmt: skip
        if targets and (types is None or name in names):
            found.append(TypeTargets(node, targets))
        elif name in names:
            raise InvalidInput(
                f"{name} has no property with @embed",
                remedy='Declare the source text in the schema: `v: Vector(8)? @embed("text")`.',
            )
    return found


Stale = dict[str, set[str]]
"""Ids of nodes with a stale vector, by property."""


def find_stale(
    reader: Reader, new: State, type_targets: TypeTargets, find: Callable[[str], Commit | None]
) -> Stale:
    """Nodes whose text has changed since their vector was computed.

    ``find`` returns the last commit of the last complete run for a property.
    """
    stale: Stale = {}
    for target, name in zip(type_targets.targets, type_targets.names, strict=True):
        commit = find(name)
        if commit is None:
            continue
        try:
            old, made = reader.state(commit.metadata[TEXTS_OF]), reader.state(commit.commit_id)
        except (NotFound, HistoryReclaimed):
            continue  # without that commit staleness is unknown
        ids = _changed(reader, old, made, new, type_targets.owner, target)
        if ids:
            stale[target.property] = ids
    return stale


def _changed(
    reader: Reader, old: State, made: State, new: State, owner: NodeType, target: EmbedTarget
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


def _untouched(
    reader: Reader, made: State, key: str, target: EmbedTarget, rows: pa.Table
) -> set[str]:
    """Ids of rows whose vector has not changed since the last run."""
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
