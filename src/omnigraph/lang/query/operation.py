"""What a query takes, answers and touches, as descriptions for programs.

Owns the shapes that lint reports and that lists of stored queries show. ``reads`` errs on the side
of too much: it is what a policy or a cache must assume.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.lang.query.checked import (
    CheckedBlock,
    CheckedDelete,
    CheckedInsert,
    CheckedQuery,
    CheckedRead,
)
from omnigraph.lang.query.plan.planner import incident_edges
from omnigraph.lang.query.typed_expressions import EntityType, ParameterValue, ValueType
from omnigraph.lang.schema import AcceptedSchema


@dataclass(frozen=True, slots=True)
class DescribedField:
    """A column or a parameter: its name and what kind of value it has."""

    name: str
    type: ValueType

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **describe_type(self.type)}


@dataclass(frozen=True, slots=True)
class QueryOperation:
    result: tuple[DescribedField, ...]
    reads: tuple[EntityType, ...]
    writes: tuple[EntityType, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "result": [item.to_json() for item in self.result],
            "reads": [_type_json(item) for item in self.reads],
            "writes": [_type_json(item) for item in self.writes],
        }


def describe_operation(query: CheckedQuery, schema: AcceptedSchema) -> QueryOperation:
    """The columns of a query and the types it reads and writes."""
    if isinstance(query, CheckedRead):
        result = tuple(DescribedField(item.name, item.type) for item in query.columns)
        return QueryOperation(result, _sorted(_block_reads(query.block)), ())
    reads: list[EntityType] = []
    writes: list[EntityType] = []
    for statement in query.statements:
        writes.append(statement.type)
        if isinstance(statement, CheckedInsert) and statement.type.kind == "edge":
            edge = schema.edges[statement.type.name]
            reads += (EntityType("node", edge.source), EntityType("node", edge.target))
        if isinstance(statement, CheckedDelete):
            writes += incident_edges(schema, statement.type)
    return QueryOperation((), _sorted((*reads, *writes)), _sorted(writes))


def describe_parameters(parameters: Iterable[ParameterValue]) -> list[dict[str, Any]]:
    """Declared parameters as a list of stored queries shows them."""
    return [DescribedField(item.name, item.type).to_json() for item in parameters]


def describe_type(kind: ValueType) -> dict[str, Any]:
    """``kind``, ``item_kind`` of a list, ``vector_dim`` of a vector, and ``nullable``."""
    if isinstance(kind, EntityType):
        return {"kind": "object", "nullable": False}
    if kind.dimensions is not None:
        body: dict[str, Any] = {"kind": "vector", "vector_dim": kind.dimensions}
    elif kind.is_list:
        body = {"kind": "list", "item_kind": kind.scalar.value_kind}
    else:
        body = {"kind": kind.scalar.value_kind}
    return {**body, "nullable": kind.nullable}


def _block_reads(block: CheckedBlock) -> Iterator[EntityType]:
    yield from block.variables.values()
    for item in block.traversals:
        yield from (item.edge, item.source_type, item.target_type)
    for inner in block.negations:
        yield from _block_reads(inner)


def _sorted(types: Iterable[EntityType]) -> tuple[EntityType, ...]:
    """Without repetitions: nodes before edges, each in name order."""
    return tuple(sorted(set(types), key=lambda item: (item.kind != "node", item.name)))


def _type_json(kind: EntityType) -> dict[str, str]:
    return {"kind": kind.kind, "type_name": kind.name}
