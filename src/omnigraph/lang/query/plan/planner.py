"""From checked query to logical plan.

Owns where each condition goes (to its variable, or beside the pattern), the naming of anonymous
variables and the canonical order of patterns. Reads the schema only for what the plan must say
about keys and cascades.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from omnigraph.lang.query import checked as c
from omnigraph.lang.query.plan.canonical import canonical_order, conjuncts
from omnigraph.lang.query.plan.logical import (
    AntiJoin,
    DeleteEntities,
    Expand,
    GroupBy,
    InsertEdge,
    InsertNode,
    Pattern,
    PatternVariable,
    Plan,
    Project,
    ReadPlan,
    Statement,
    UpdateEntities,
    WritePlan,
)
from omnigraph.lang.query.typed_expressions import (
    Aggregate,
    EntityType,
    Expression,
    Junction,
    ParameterValue,
    can_fail,
    has_aggregate,
    to_text,
    variables,
    walk,
)
from omnigraph.lang.schema import AcceptedSchema

_SortKey: TypeAlias = tuple[str, ...]


def plan_query(query: c.CheckedQuery, schema: AcceptedSchema) -> Plan:
    """The logical plan: equal for queries that differ only in the order of their clauses."""
    if isinstance(query, c.CheckedWrite):
        statements = tuple(_statement(item, schema) for item in query.statements)
        return WritePlan(query.name, query.parameters, statements)
    named = sorted(query.block.variables)
    output: Project | GroupBy = Project(query.columns)
    tie_break = tuple(named) if query.ranking is not None or query.order else ()
    if query.is_grouped:
        keys = tuple(item for item in query.columns if not has_aggregate(item.expression))
        output, tie_break = GroupBy(keys, _aggregates(query.columns), query.columns), ()
    return ReadPlan(
        query=query.name,
        parameters=query.parameters,
        pattern=_pattern(query.block, anonymous=0),
        output=output,
        ranking=query.ranking,
        order=query.order,
        tie_break=tie_break,
        limit=query.limit if isinstance(query.limit, int) else None,
        offset=query.offset if isinstance(query.offset, int) else 0,
        limit_parameter=query.limit if isinstance(query.limit, ParameterValue) else None,
        offset_parameter=query.offset if isinstance(query.offset, ParameterValue) else None,
    )


def _aggregates(columns: Iterable[c.ResultColumn]) -> tuple[Aggregate, ...]:
    """The distinct aggregates of all columns, in the order in which they are written."""
    found = (part for item in columns for part in walk(item.expression))
    return tuple(dict.fromkeys(part for part in found if isinstance(part, Aggregate)))


# Patterns


def _pattern(block: c.CheckedBlock, anonymous: int) -> Pattern:
    """``anonymous`` is how many anonymous variables the patterns around this one have."""
    expands, nameless = _expands(block.traversals, anonymous)
    anti_joins = [_anti_join(item, anonymous + len(nameless)) for item in block.negations]
    predicates, filters = _distribute(block)
    found = [
        PatternVariable(name, kind, canonical_order(predicates[name]))
        for name, kind in block.variables.items()
    ]
    found.extend(PatternVariable(name, kind) for name, kind in nameless.items())
    return Pattern(
        variables=tuple(sorted(found, key=lambda item: item.name)),
        expands=expands,
        filters=canonical_order(filters),
        anti_joins=_unique(anti_joins),
    )


def _distribute(
    block: c.CheckedBlock,
) -> tuple[dict[str, list[Expression]], list[Expression]]:
    """Conditions by the one variable of this block they concern, and all the others."""
    predicates: dict[str, list[Expression]] = defaultdict(list)
    filters: list[Expression] = []
    for condition in conjuncts(block.conditions):
        mentioned = variables(condition)
        is_local = len(mentioned) == 1 and mentioned <= block.variables.keys()
        if is_local and not can_fail(condition):
            predicates[next(iter(mentioned))].append(condition)
        else:
            filters.append(condition)
    return predicates, filters


def _expands(
    traversals: tuple[c.CheckedTraversal, ...], anonymous: int
) -> tuple[tuple[Expand, ...], dict[str, EntityType]]:
    """Traversals in canonical order, and the anonymous variables they bring."""
    nameless: dict[str, EntityType] = {}

    def end(name: str | None, kind: EntityType) -> str:
        if name is None:
            name = f"#{anonymous + len(nameless) + 1}"
            nameless[name] = kind
        return name

    found: dict[Expand, None] = {}
    for item in sorted(traversals, key=_traversal_key):
        expand = Expand(
            edge=item.edge,
            source=end(item.source, item.source_type),
            target=end(item.target, item.target_type),
            undirected=item.undirected,
            min_hops=item.min_hops,
            max_hops=item.max_hops,
            edge_variable=item.edge_variable,
        )
        found[expand] = None
    return tuple(found), nameless


def _traversal_key(item: c.CheckedTraversal) -> tuple[str, str, str, str, bool, int, int]:
    ends = (item.source or "", item.target or "")
    rest = (item.undirected, item.min_hops, item.max_hops)
    return (*ends, item.edge.name, item.edge_variable or "", *rest)


def _anti_join(block: c.CheckedBlock, anonymous: int) -> AntiJoin:
    pattern = _pattern(block, anonymous)
    return AntiJoin(pattern, tuple(sorted(_free(pattern))))


def _free(pattern: Pattern) -> set[str]:
    """The variables a pattern uses and does not bind."""
    used: set[str] = set()
    for item in pattern.expands:
        used |= {item.source, item.target}
    for condition in pattern.filters:
        used |= variables(condition)
    for inner in pattern.anti_joins:
        used |= set(inner.outer)
    return used - {item.name for item in pattern.variables}


def _unique(anti_joins: list[AntiJoin]) -> tuple[AntiJoin, ...]:
    by_text = {_pattern_text(item.pattern): item for item in anti_joins}
    return tuple(by_text[text] for text in sorted(by_text))


def _pattern_text(pattern: Pattern) -> str:
    """A text that is equal exactly for equal patterns, to put them in order."""
    parts = [
        f"{item.name}:{item.type.key}{{{'&'.join(to_text(part) for part in item.predicates)}}}"
        for item in pattern.variables
    ]
    parts += [repr(item) for item in pattern.expands]
    parts += [to_text(item) for item in pattern.filters]
    parts += [f"not({_pattern_text(item.pattern)})" for item in pattern.anti_joins]
    return "\n".join(parts)


# Mutations


def _statement(statement: c.CheckedStatement, schema: AcceptedSchema) -> Statement:
    match statement:
        case c.CheckedInsert():
            return _insert(statement, schema)
        case c.CheckedUpdate():
            return UpdateEntities(
                statement.type, _values(statement.assignments), _where(statement.where)
            )
        case c.CheckedDelete():
            cascade = incident_edges(schema, statement.type)
            return DeleteEntities(statement.type, _where(statement.where), cascade)


def _where(condition: Expression) -> Expression:
    """The same condition in canonical form; what has to hold together, as one ``and``."""
    parts = canonical_order(conjuncts([condition]))
    return parts[0] if len(parts) == 1 else Junction("and", parts)


def _insert(statement: c.CheckedInsert, schema: AcceptedSchema) -> InsertNode | InsertEdge:
    values = _values(statement.assignments)
    if statement.type.kind == "node":
        is_keyed = bool(schema.nodes[statement.type.name].key_columns)
        return InsertNode(statement.type, values, is_keyed)
    words = schema.edges[statement.type.name].endpoints.values()
    given = {item.property.property: item.value for item in values}
    rest = tuple(item for item in values if item.property.property not in words)
    source, target = (given[word] for word in words)
    return InsertEdge(statement.type, source, target, rest)


def _values(assignments: tuple[c.CheckedAssignment, ...]) -> tuple[c.CheckedAssignment, ...]:
    return tuple(sorted(assignments, key=lambda item: item.property.property))


def incident_edges(schema: AcceptedSchema, kind: EntityType) -> tuple[EntityType, ...]:
    """The edge types that touch nodes of a type, in name order; none for an edge type."""
    if kind.kind == "edge":
        return ()
    return tuple(
        EntityType("edge", edge.name)
        for edge in schema.edges.values()
        if kind.name in (edge.source, edge.target)
    )
