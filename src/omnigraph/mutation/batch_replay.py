"""Replays the operations of a batch, in order, over one snapshot.

Each operation sees the effects of the earlier ones. The result is the difference from the snapshot:
entities to write and entities to remove. An entity that is deleted and inserted again is a new one
with the old id: no value and no edge of the stored one stays.

Constraints across entities (ends of edges, uniqueness, cardinality) are not checked here: they hold
for the result, not after every operation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import TypeImage
from omnigraph.constraints.edge_checks import ends, incident
from omnigraph.constraints.edge_content import content_columns, spelled_columns
from omnigraph.errors import EntityNotFound, KeyConflict
from omnigraph.lang.schema import DST, SRC, AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.entity_rows import (
    Row,
    column_array,
    complete_row,
    replace_at,
    rows_to_arrow,
)
from omnigraph.prepare.preparer import KnownRows
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.snapshots.equality import same_stored
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.blobs import complete_rows
from omnigraph.storage.lance.lookup import lookup_filter
from omnigraph.storage.lance.tables import ROW_ID

Verb = Literal["insert", "upsert", "replace", "update", "delete"]
END_COLUMNS: Final = (SRC, DST)
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BatchOperation:
    """One call on a batch.

    ``values`` are stored values, edge ends included: complete rows for ``insert`` and ``replace``,
    otherwise the given values. ``id`` is None for an edge that is matched by content; its row is
    complete, too.
    """

    verb: Verb
    owner: NodeType | EdgeType
    id: str | None
    values: Row = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchEffects:
    """The change that a batch makes, and the row ids of the entities that it changes."""

    image: dict[str, TypeImage]
    known: dict[str, KnownRows]


@dataclass(slots=True)
class _ReplayedEntity:
    """One entity after the operations so far.

    ``row_id`` is its row in the snapshot. ``lost`` means that the stored entity was deleted, even
    if a new one has its id. ``whole`` is a new row; otherwise ``given`` values were set over the
    stored row. ``updated`` entities are written even if they had those values already.
    """

    row_id: int | None = None
    exists: bool = False
    lost: bool = False
    updated: bool = False
    whole: Row | None = None
    given: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    ends: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    content: Mapping[str, str | None] = field(default_factory=lambda: _EMPTY)


class Replay:
    """Operations on one snapshot. ``made`` are ids that the batch generated itself."""

    def __init__(
        self,
        schema: AcceptedSchema,
        stored: StoredSnapshot,
        operations: Sequence[BatchOperation],
        made: Collection[str] = (),
    ) -> None:
        self._schema = schema
        self._stored = stored
        self._operations = operations
        self._made = made
        self._matched = {op.owner.key for op in operations if op.id is None}
        self._cascades = any(
            op.verb == "delete" and isinstance(op.owner, NodeType) for op in operations
        )
        self._entities: dict[str, dict[str, _ReplayedEntity]] = {}
        self._at: dict[tuple[str, str, str], dict[str, None]] = {}
        self._equal: dict[tuple[str, tuple[str | None, ...]], dict[str, None]] = {}
        self._spelled: dict[int, dict[str, str | None]] = {}

    def run(self) -> BatchEffects:
        """Run all operations; raises the error of the first one that fails."""
        self._find_named()
        self._find_incident()
        self._find_equal()
        for number, operation in enumerate(self._operations):
            self._apply(operation, number)
        image, known = {}, {}
        for key in sorted(self._entities):
            found = self._effect(self._schema.type(key), self._entities[key])
            if found is not None:
                image[key], known[key] = found
        return BatchEffects(image, known)

    # -- what is stored ----------------------------------------------------------------------------

    def _find_named(self) -> None:
        """Look up the stored entities that operations name by id."""
        named: dict[str, dict[str, None]] = {}
        made = self._made
        for operation in self._operations:
            id, key = operation.id, operation.owner.key
            ids = named.get(key)
            if ids is None:
                ids = named[key] = {}
            if id is not None and id not in made:
                ids[id] = None
        for key, ids in named.items():
            self._entities.setdefault(key, {})
            if ids:
                self._enter(self._schema.type(key), self._lookup(key, "id", ids))

    def _find_incident(self) -> None:
        """Look up the stored edges of the stored nodes that are deleted."""
        if not self._cascades:
            return
        deleted: dict[str, dict[str, None]] = {}
        for op in self._operations:
            if op.verb == "delete" and isinstance(op.owner, NodeType) and op.id is not None:
                entity = self._entities[op.owner.key].get(op.id)
                if entity is not None and entity.row_id is not None:
                    deleted.setdefault(op.owner.key, {})[op.id] = None
        for key, ids in deleted.items():
            for edge, column in incident(self._schema, key):
                if self._stored.count(edge.key):
                    self._enter(edge, self._lookup(edge.key, column, ids))

    def _find_equal(self) -> None:
        """For edges that are matched by content: look up the stored edges with the same ends and
        their values, and spell all given values canonically."""
        for key in sorted(self._matched):
            edge = self._schema.type(key)
            assert isinstance(edge, EdgeType)
            numbers = [n for n, op in enumerate(self._operations) if op.owner.key == key]
            given = [self._operations[n].values for n in numbers]
            for number, row in zip(numbers, _spelled_rows(edge, given), strict=True):
                names = self._operations[number].values
                self._spelled[number] = {n: text for n, text in row.items() if n in names}
            looked_for = [
                op.values for op in self._operations if op.owner is edge and op.id is None
            ]
            found = self._lookup(key, SRC, {row[SRC]: None for row in looked_for})
            pairs = {(row[SRC], row[DST]) for row in looked_for}
            self._enter(edge, [item for item in found if (item[2], item[3]) in pairs])
            self._read_content(edge)

    def _read_content(self, edge: EdgeType) -> None:
        entities = {id: e for id, e in self._entities[edge.key].items() if e.row_id is not None}
        if not entities:
            return
        row_ids = [entity.row_id for entity in entities.values()]
        rows = complete_rows(self._stored.table(edge.key), [r for r in row_ids if r is not None])
        for (id, entity), content in zip(
            entities.items(), _texts(spelled_columns(edge, rows)), strict=True
        ):
            entity.content = content
            self._index_content(edge, id, entity)

    def _lookup(
        self, key: str, column: str, values: Mapping[str, None]
    ) -> list[tuple[str, int, str | None, str | None]]:
        """Look up stored rows by a column: their ids, row ids and ends."""
        table = self._stored.table(key)
        if not values or not table.rows:
            return []
        wanted = pa.array(list(values), pa.string())
        has_ends = key.startswith("edge:")
        condition = lookup_filter(table, column, wanted)
        columns = ["id", *(END_COLUMNS if has_ends else ())]
        found = table.scan(columns, condition, with_row_id=True)
        if condition is None:
            found = found.filter(pc.is_in(found[column], value_set=wanted))
        nothing = [None] * found.num_rows
        both = [found[name].to_pylist() if has_ends else nothing for name in END_COLUMNS]
        return list(zip(found["id"].to_pylist(), found[ROW_ID].to_pylist(), *both, strict=True))

    def _enter(self, owner: NodeType | EdgeType, found: Iterable[tuple[Any, ...]]) -> None:
        """Add stored entities, unless they are known."""
        entities = self._entities.setdefault(owner.key, {})
        for id, row_id, source, target in found:
            if id not in entities:
                entities[id] = _ReplayedEntity(row_id, exists=True)
                if isinstance(owner, EdgeType):
                    self._move(owner, id, entities[id], {SRC: source, DST: target})

    # -- operations --------------------------------------------------------------------------------

    def _apply(self, operation: BatchOperation, number: int) -> None:
        owner, id, verb = operation.owner, operation.id, operation.verb
        entities = self._entities[owner.key]
        if id is None:
            if self._has_equal(owner, number):
                return
            id = new_ulid()
        entity = entities.get(id)
        if entity is None:
            entity = entities[id] = _ReplayedEntity()
        if verb == "delete":
            self._delete(owner, id, entity)
        elif entity.exists and verb == "insert":
            raise KeyConflict(owner.key, id)
        elif not entity.exists and verb == "update":
            raise EntityNotFound(
                f"there is no {owner.name} with id {id!r}",
                details={"type_key": owner.key, "id": id},
            )
        else:
            self._write(operation, id, entity)
            if isinstance(owner, EdgeType):
                self._move(owner, id, entity, operation.values)
                if owner.key in self._matched:
                    self._change_content(owner, id, entity, number)

    def _write(self, operation: BatchOperation, id: str, entity: _ReplayedEntity) -> None:
        values = operation.values
        if entity.exists and operation.verb in ("upsert", "update"):
            if entity.whole is None:
                entity.given = {**entity.given, **values}
            else:
                entity.whole.update(values)
            entity.updated = entity.updated or operation.verb == "update"
            return
        entity.given = entity.content = _EMPTY
        entity.exists, entity.updated = True, False
        if operation.verb != "upsert" or operation.id is None:
            entity.whole = {**values, "id": id}
            return
        entity.whole = {**dict.fromkeys(operation.owner.properties), **values, "id": id}
        complete_row(operation.owner, entity.whole)

    def _delete(self, owner: NodeType | EdgeType, id: str, entity: _ReplayedEntity) -> None:
        """Delete an entity, if it exists; with a node, also its edges."""
        if not entity.exists:
            return
        entity.exists, entity.whole = False, None
        entity.given = entity.content = _EMPTY
        entity.lost = entity.row_id is not None
        if isinstance(owner, EdgeType):
            return
        for edge, column in incident(self._schema, owner.key):
            for edge_id in self._at.get((edge.key, column, id), ()):
                found = self._entities[edge.key][edge_id]
                if found.exists and found.ends[column] == id:
                    self._delete(edge, edge_id, found)

    # -- edges by their ends and by their content --------------------------------------------------

    def _move(
        self, edge: EdgeType, id: str, entity: _ReplayedEntity, values: Mapping[str, Any]
    ) -> None:
        """Note the ends of an edge, if the deletion of a node may ask for them."""
        if not self._cascades:
            return
        for column, _ in ends(edge):
            if column in values:
                entity.ends = {**entity.ends, column: values[column]}
                self._at.setdefault((edge.key, column, values[column]), {})[id] = None

    def _has_equal(self, owner: NodeType | EdgeType, number: int) -> bool:
        """Whether an edge with the same ends and properties exists at this point."""
        assert isinstance(owner, EdgeType)
        wanted = _content(owner, self._spelled[number])
        ids = self._equal.get((owner.key, wanted), ())
        entities = self._entities[owner.key]
        return any(
            entities[id].exists and _content(owner, entities[id].content) == wanted for id in ids
        )

    def _change_content(
        self, edge: EdgeType, id: str, entity: _ReplayedEntity, number: int
    ) -> None:
        spelled = self._spelled[number]
        is_part = len(spelled) < len(content_columns(edge))
        if entity.whole is not None and not entity.content and is_part:
            (spelled,) = _spelled_rows(edge, [entity.whole])  # with defaults
        entity.content = {**entity.content, **spelled}
        self._index_content(edge, id, entity)

    def _index_content(self, edge: EdgeType, id: str, entity: _ReplayedEntity) -> None:
        self._equal.setdefault((edge.key, _content(edge, entity.content)), {})[id] = None

    # -- the result --------------------------------------------------------------------------------

    def _effect(
        self, owner: NodeType | EdgeType, entities: Mapping[str, _ReplayedEntity]
    ) -> tuple[TypeImage, KnownRows] | None:
        """The change of one type; None when there is none."""
        gone = {id: e for id, e in entities.items() if e.lost}
        new = [e for e in entities.values() if e.exists and e.whole is not None]
        patched = [e for e in entities.values() if e.exists and e.whole is None and e.given]
        rows, written = self._patched(owner, patched)
        if new:
            rows.append(rows_to_arrow(owner, [e.whole for e in new if e.whole is not None]))
            written += [None if e.lost else e.row_id for e in new]
        if not rows and not gone:
            return None
        removed = pa.array(list(gone), pa.string()) if gone else None
        fresh = not gone and all(row_id is None for row_id in written)
        image = TypeImage(pa.concat_tables(rows) if rows else None, removed, fresh=fresh)
        known = KnownRows(
            pa.array(written, pa.uint64()),
            pa.array([e.row_id for e in gone.values()], pa.uint64()),
            removed,
        )
        return image, known

    def _patched(
        self, owner: NodeType | EdgeType, entities: Sequence[_ReplayedEntity]
    ) -> tuple[list[pa.Table], list[int | None]]:
        """The stored rows of these entities with the given values set, and their row ids.

        Entities that an upsert left unchanged are left out.
        """
        if not entities:
            return [], []
        table = self._stored.table(owner.key)
        row_ids = [entity.row_id for entity in entities]
        stored = complete_rows(table, [row_id for row_id in row_ids if row_id is not None])
        changed = np.array([entity.updated for entity in entities])
        columns = {}
        for column in owner.columns():
            values = as_array(stored[column.name])
            at = [n for n, entity in enumerate(entities) if column.name in entity.given]
            if at:
                given = column_array(column.type, [entities[n].given[column.name] for n in at])
                changed[at] |= ~same_stored(values.take(pa.array(at)), given)
                values = replace_at(values, at, given)
            columns[column.name] = values
        kept = np.flatnonzero(changed)
        if not len(kept):
            return [], []
        return [pa.table(columns).take(kept)], [row_ids[n] for n in kept.tolist()]


def _content(edge: EdgeType, content: Mapping[str, str | None]) -> tuple[str | None, ...]:
    return tuple(content[name] for name in content_columns(edge))


def _spelled_rows(edge: EdgeType, rows: Sequence[Row]) -> list[dict[str, str | None]]:
    return list(_texts(spelled_columns(edge, rows_to_arrow(edge, rows))))


def _texts(columns: Mapping[str, pa.Array]) -> Iterator[dict[str, str | None]]:
    """Columns of texts as one mapping per row."""
    for values in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        yield dict(zip(columns, values, strict=True))
