"""Write queries: their statements run in order on one snapshot and become one commit.

Inserts and updates build pending rows that later statements read; all deletes read the committed
state. Constraints are evaluated once, over the final image. A query that changes nothing makes no
commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.rows import Commit
from omnigraph.constraints import Image, TypeImage
from omnigraph.constraints.coerce import relaxed
from omnigraph.errors import InvalidValue
from omnigraph.lang.query import bind_parameters, compile_cached
from omnigraph.lang.query.checked import CheckedAssignment
from omnigraph.lang.query.plan.logical import (
    DeleteEntities,
    InsertEdge,
    InsertNode,
    UpdateEntities,
    WritePlan,
)
from omnigraph.lang.query.typed_expressions import (
    Constant,
    Expression,
    variables,
)
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, entity_id
from omnigraph.model.clock import Clock
from omnigraph.model.ids import new_ulid
from omnigraph.model.python_values import plain_value
from omnigraph.model.types import PropertyType
from omnigraph.mutation.pending_rows import PendingType, matching_ids
from omnigraph.predicates.condition import RowCondition, StoredValues
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.entity_rows import Row, column_array, complete_row
from omnigraph.prepare.preparer import Preparer
from omnigraph.transaction.prepared import WriteInfo


@dataclass(frozen=True, slots=True)
class MutationResult:
    """The result of a mutation. ``commit`` is None when it changed nothing."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    commit: Commit | None
    repeated: bool = False
    """Whether an earlier request with the same idempotency key made the commit."""
    rows_written: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Rows by type key, for upkeep."""

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": None if self.commit is None else self.commit.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
        }


@dataclass(frozen=True, slots=True)
class MutationSpec:
    """A write query and its parameters, as given."""

    text: str
    name: str | None = None
    params: Mapping[str, Any] | None = None

    def digest(self) -> str:
        params = {name: _comparable(value) for name, value in dict(self.params or {}).items()}
        body = [self.text, self.name, params]
        return hashlib.sha256(json.dumps(body, sort_keys=True, default=repr).encode()).hexdigest()


class Mutation:
    """One request to run a write query. ``now()`` is the same in all statements and attempts."""

    def __init__(self, spec: MutationSpec, blobs: BlobPolicy, clock: Clock) -> None:
        self._spec = spec
        self._blobs = blobs
        self._now_ms = clock.now_us() // 1_000

    def commit(self, committer: Committer, options: WriteOptions) -> MutationResult:
        """Run the query as one commit on a branch."""
        outcome = committer.run(
            options,
            lambda attempt: self._prepare(attempt, options.info),
            digest=self._spec.digest,
        )
        result = outcome.result
        return MutationResult(
            options.branch,
            result["query_name"],
            result["affected_nodes"],
            result["affected_edges"],
            outcome.commit,
            outcome.repeated,
            outcome.rows_written,
        )

    def _prepare(self, attempt: Attempt, info: WriteInfo) -> Prepared[None]:
        schema_hash = attempt.snapshot.schema_hash
        query = compile_cached(self._spec.text, attempt.schema, schema_hash, self._spec.name)
        query.require_write()
        plan = query.plan
        assert isinstance(plan, WritePlan)
        values = bind_parameters(plan.parameters, self._spec.params).values
        preparer = Preparer(attempt.repository, attempt.snapshot, attempt.schema)
        bytes_max = attempt.repository.settings.limits.mutation_bytes_max
        execution = _Execution(
            attempt.schema, preparer, self._blobs, values, self._now_ms, bytes_max
        )
        effects = execution.delete(plan) if plan.deletes else execution.write(plan)
        result = {
            "query_name": query.name,
            "affected_nodes": effects.nodes,
            "affected_edges": effects.edges,
        }
        if not effects.nodes and not effects.edges:
            return Prepared(None, result)
        prepared = preparer.prepare(effects.image, info, cascaded=True)
        if not prepared.tables:
            return Prepared(None, result)
        return Prepared(
            prepared,
            result,
            rows_written={key: len(change.superseded) for key, change in effects.image.items()},
            repeatable=all(isinstance(s, InsertNode | InsertEdge) for s in plan.statements),
        )


@dataclass(frozen=True, slots=True)
class MutationEffects:
    """The change that the statements of a query make, and the entities they affected."""

    image: Image
    nodes: int
    edges: int


class _Execution:
    """Runs the statements of one plan on one snapshot."""

    def __init__(
        self,
        schema: AcceptedSchema,
        preparer: Preparer,
        blobs: BlobPolicy,
        parameters: Mapping[str, Any],
        now_ms: int,
        bytes_max: int,
    ) -> None:
        self._schema = schema
        self._preparer = preparer
        self._blobs = blobs
        self._parameters = parameters
        self._now_ms = now_ms
        self._bytes_max = bytes_max
        self._pending: dict[str, PendingType] = {}

    # -- inserts and updates -----------------------------------------------------------------------

    def write(self, plan: WritePlan) -> MutationEffects:
        nodes = edges = 0
        for statement in plan.statements:
            match statement:
                case InsertNode():
                    self._insert_node(statement)
                    nodes += 1
                case InsertEdge():
                    self._insert_edge(statement)
                    edges += 1
                case UpdateEntities():
                    count = self._update(statement)
                    nodes += count if statement.type.kind == "node" else 0
                    edges += count if statement.type.kind == "edge" else 0
        image = {
            key: TypeImage(pending.rows, fresh=pending.only_fresh)
            for key, pending in self._pending.items()
            if pending.rows is not None
        }
        return MutationEffects(image, nodes, edges)

    def _insert_node(self, statement: InsertNode) -> None:
        node = self._schema.nodes[statement.type.name]
        row = self._row(node, statement.values)
        row["id"] = entity_id(node, row) if statement.upsert else new_ulid()
        self._pending_of(node).insert(row, fresh=not statement.upsert)

    def _insert_edge(self, statement: InsertEdge) -> None:
        edge = self._schema.edges[statement.type.name]
        row = self._row(edge, statement.values)
        for column, value in zip(edge.endpoints, (statement.source, statement.target), strict=True):
            row[column] = self._value(value)
            if row[column] is None:
                shown = edge.shown_name(column)
                raise InvalidValue(f"edge {edge.name} needs both ends, and `{shown}` is null")
        row["id"] = new_ulid()
        self._pending_of(edge).insert(row, fresh=True)

    def _row(self, owner: NodeType | EdgeType, values: tuple[CheckedAssignment, ...]) -> Row:
        row: Row = dict.fromkeys(owner.properties)
        for item in values:
            row[item.property.property] = self._assigned(owner, item)
        complete_row(owner, row)
        return self._blobs.settle_row(owner, row)

    def _update(self, statement: UpdateEntities) -> int:
        """Set properties of matching entities; returns how many match."""
        owner = self._schema.type(statement.type.key)
        fixed, computed = {}, []
        for item in statement.values:
            name = item.property.property
            if variables(item.value):
                computed.append(item)
                continue
            fixed[name] = self._assigned(owner, item)
            if fixed[name] is None and not owner.properties[name].type.nullable:
                raise InvalidValue(f"{owner.name}.{name} is required")
        fixed = self._blobs.settle_row(owner, fixed)
        pending = self._pending_of(owner)
        rows = pending.matching(self._condition(owner, statement.where))
        if rows is None:
            return 0
        columns = {
            name: _repeated(owner.properties[name].type, value, rows.num_rows)
            for name, value in fixed.items()
        }
        for item in computed:
            columns[item.property.property] = self._computed(owner, item, rows)
        for name, column in columns.items():
            rows = rows.set_column(rows.column_names.index(name), name, column)
        pending.put(rows)
        return int(rows.num_rows)

    def _computed(
        self, owner: NodeType | EdgeType, item: CheckedAssignment, rows: pa.Table
    ) -> pa.Array:
        """The values of an assignment that reads the row, all as it was before the update."""
        kind, name = item.property.type, item.property.property
        found = self._stored_values(owner).column(item.value, rows)
        valid = found.is_valid()
        if not kind.nullable and valid is not None and not valid.all():
            raise InvalidValue(f"{owner.name}.{name} is required, and its new value is null")
        if found.type.scalar is kind.scalar and kind.enum is None:
            return found.to_arrow()
        try:
            accept = relaxed(kind).accept
            return column_array(kind, [None if v is None else accept(v) for v in found.to_list()])
        except InvalidValue as problem:
            raise InvalidValue(f"{owner.name}.{name}: {problem.message}") from None

    def _pending_of(self, owner: NodeType | EdgeType) -> PendingType:
        found = self._pending.get(owner.key)
        if found is None:
            found = PendingType(owner, self._preparer.stored.table(owner.key), self._bytes_max)
            self._pending[owner.key] = found
        return found

    # -- deletes -----------------------------------------------------------------------------------

    def delete(self, plan: WritePlan) -> MutationEffects:
        found: dict[str, list[pa.Array]] = {}
        for statement in plan.statements:
            assert isinstance(statement, DeleteEntities)
            table = self._preparer.stored.table(statement.type.key)
            owner = self._schema.type(statement.type.key)
            ids = matching_ids(table, self._condition(owner, statement.where))
            if len(ids):
                found.setdefault(statement.type.key, []).append(ids)
        removed = {key: pa.concat_arrays(parts).unique() for key, parts in found.items()}
        image = self._preparer.with_cascades(
            {key: TypeImage(removed=ids) for key, ids in removed.items()}
        )
        nodes = edges = 0
        for key, change in image.items():
            assert change.removed is not None
            if key.startswith("node:"):
                nodes += len(change.removed)
            else:
                edges += len(change.removed)
        return MutationEffects(image, nodes, edges)

    # -- values ------------------------------------------------------------------------------------

    def _stored_values(self, owner: NodeType | EdgeType) -> StoredValues:
        return StoredValues(self._parameters, self._now_ms, owner.column_of)

    def _condition(self, owner: NodeType | EdgeType, where: Expression) -> RowCondition:
        return RowCondition(where, self._stored_values(owner))

    def _assigned(self, owner: NodeType | EdgeType, item: CheckedAssignment) -> Any:
        """The value of an assignment as a stored value of the property."""
        value, kind = self._value(item.value), item.property.type
        if value is None or isinstance(item.value, Constant):
            return value
        try:
            return _convert(kind, value)
        except InvalidValue as problem:
            name = f"{owner.name}.{item.property.property}"
            raise InvalidValue(f"{name}: {problem.message}") from None

    def _value(self, expression: Expression) -> Any:
        value = StoredValues(self._parameters, self._now_ms).value(expression)
        return list(value) if isinstance(value, tuple) else value


def _comparable(value: Any) -> Any:
    """A parameter in a form that is equal for equal values, for a digest."""
    try:
        return plain_value(value)
    except InvalidValue:
        return repr(value)


def _repeated(kind: PropertyType, value: Any, times: int) -> pa.Array:
    """A column that repeats one value."""
    return column_array(kind, [value]).take(np.zeros(times, dtype=np.int64))


def _convert(kind: PropertyType, value: Any) -> Any:
    """A parameter's value converted to the property's type; enum members are checked later."""
    return value if kind.is_blob else relaxed(kind).accept(value)
