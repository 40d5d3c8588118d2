"""Types of mutation statements: insert, update, delete.

Owns what can be known of a write before anything is read: types, properties, values, required
properties, immutable keys, and that one query does not both write and delete.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.expression import check_condition, check_expression
from omnigraph.lang.query.check.names import describe, how_to_give, report_unknown_field
from omnigraph.lang.query.check.values import compatible, is_literal, stored_constant
from omnigraph.lang.query.checked import (
    CheckedAssignment,
    CheckedDelete,
    CheckedInsert,
    CheckedStatement,
    CheckedUpdate,
)
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import (
    STRING,
    EntityType,
    Expression,
    NullValue,
    ParameterValue,
    PropertyOf,
)
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.model.types import PropertyType


def check_statements(context: Context, query: ast.Query) -> tuple[CheckedStatement, ...]:
    assert isinstance(query.body, ast.WriteBody)
    found = [_statement(context, item) for item in query.body.statements]
    _check_kinds(context, query, query.body.statements)
    return tuple(item for item in found if item is not None)


def _check_kinds(context: Context, query: ast.Query, statements: tuple[ast.Statement, ...]) -> None:
    """A query writes or deletes. Reported last: what is wrong inside a statement comes first."""
    kinds = [isinstance(item, ast.Delete) for item in statements]
    if any(kinds) and not all(kinds):
        other = statements[kinds.index(not kinds[0])]
        context.report(
            "T42",
            f"query `{query.name.text}` both deletes and inserts or updates",
            other.span,
            remedy="Split it: one query with the deletes, one with the inserts and updates.",
        )


def _statement(context: Context, statement: ast.Statement) -> CheckedStatement | None:
    declared = _resolve_type(context, statement.type_name)
    if declared is None:
        return None
    match statement:
        case ast.Insert():
            return _insert(context, statement, declared)
        case ast.Update():
            return _update(context, statement, declared)
        case ast.Delete():
            where = _where(context, statement.where, declared)
            return None if where is None else CheckedDelete(_type(declared), where)


def _resolve_type(context: Context, name: ast.Name) -> NodeType | EdgeType | None:
    schema = context.schema
    found = schema.nodes.get(name.text) or schema.edges.get(name.text)
    if found is None:
        known = (*schema.nodes, *schema.edges)
        message = f"there is no node or edge type {name.text}"
        remedy = None
        if name.text in schema.interfaces:
            remedy = f"{name.text} is an interface: write a node type that implements it."
        context.report_unknown("T10", message, name.span, name.text, known, remedy=remedy)
    return found


def _type(declared: NodeType | EdgeType) -> EntityType:
    return EntityType("node" if isinstance(declared, NodeType) else "edge", declared.name)


# Insert and update


def _insert(
    context: Context, statement: ast.Insert, declared: NodeType | EdgeType
) -> CheckedInsert | None:
    errors_before = context.diagnostics.error_count
    fields = _fields(declared, with_ends=True)
    assignments = _assignments(context, statement, declared, fields)
    _check_complete(context, statement, declared)
    if context.diagnostics.error_count != errors_before:
        return None
    return CheckedInsert(_type(declared), assignments)


def _update(
    context: Context, statement: ast.Update, declared: NodeType | EdgeType
) -> CheckedUpdate | None:
    errors_before = context.diagnostics.error_count
    assigned = _fields(declared, with_ends=False)
    assignments = _assignments(context, statement, declared, assigned)
    for item in statement.assignments:
        if isinstance(declared, NodeType) and item.name.text in declared.key_columns:
            context.report(
                "T43",
                f"`{item.name.text}` is part of the key of {declared.name} and cannot change",
                item.name.span,
                remedy="Delete the node and insert it with the new key.",
            )
    where = _where(context, statement.where, declared)
    if where is None or context.diagnostics.error_count != errors_before:
        return None
    return CheckedUpdate(_type(declared), assignments, where)


def _fields(declared: NodeType | EdgeType, *, with_ends: bool) -> Mapping[str, PropertyType]:
    """What can be assigned or compared, by name."""
    fields = {name: item.type for name, item in declared.properties.items()}
    if with_ends:
        fields.update((name, STRING) for name in declared.endpoints.values())
    return fields


def _assignments(
    context: Context,
    statement: ast.Insert | ast.Update,
    declared: NodeType | EdgeType,
    fields: Mapping[str, PropertyType],
) -> tuple[CheckedAssignment, ...]:
    if not statement.assignments:
        message = f"nothing is assigned to {declared.name}"
        context.report("T10", message, statement.span, remedy="Assign at least one property.")
    readable = None if isinstance(statement, ast.Insert) else _fields(declared, with_ends=True)
    scope = BindingScope(written=_type(declared), fields=readable)
    found: list[CheckedAssignment] = []
    seen: set[str] = set()
    for item in statement.assignments:
        name = item.name.text
        if name in seen:
            context.report(
                "T13",
                f"`{name}` is assigned twice",
                item.name.span,
                remedy="Keep one of the two.",
            )
            continue
        seen.add(name)
        if isinstance(statement, ast.Update) and name in declared.endpoints.values():
            context.report(
                "T43",
                f"`{name}` is an end of {declared.name} and cannot change",
                item.name.span,
                remedy="Delete the edge and insert it between the other nodes.",
            )
            continue
        if name not in fields:
            report_unknown_field(context, _type(declared), item.name, fields)
            continue
        value = _assigned(context, scope, item, fields[name])
        if value is not None:
            found.append(CheckedAssignment(PropertyOf("", name, fields[name]), value))
    return tuple(found)


def _assigned(
    context: Context, scope: BindingScope, item: ast.PropertyValue, kind: PropertyType
) -> Expression | None:
    """The value of an assignment, known to fit the property."""
    name = f"`{item.name.text}`"
    if is_literal(item.value):
        return stored_constant(context, item.value, kind, name)
    value = check_expression(context, scope, item.value, "write")
    if value is None:
        return None
    if isinstance(value, NullValue):
        return _assigned_null(context, item, kind)
    if kind.is_blob and not isinstance(value, ParameterValue):
        context.report(
            "T24",
            f"{name} is a Blob, which takes a literal or a parameter",
            item.value.span,
            remedy="Pass the bytes as a parameter.",
        )
        return None
    if isinstance(value.type, EntityType) or not compatible(kind, value.type):
        context.report(
            "T7",
            f"{name} is {kind.required()}, and this is {describe(value.type)}",
            item.value.span,
            remedy=how_to_give(value, kind),
        )
        return None
    return value


def _assigned_null(
    context: Context, item: ast.PropertyValue, kind: PropertyType
) -> NullValue | None:
    if kind.nullable:
        return NullValue(kind)
    context.report(
        "T3",
        f"`{item.name.text}` is {kind}, which cannot be null",
        item.value.span,
        remedy="Assign a value, or declare the property with `?`.",
    )
    return None


def _check_complete(context: Context, statement: ast.Insert, declared: NodeType | EdgeType) -> None:
    """Every required property is assigned, or computed from one that is."""
    if not statement.assignments:
        return
    given = {item.name.text for item in statement.assignments}
    missing = [
        name
        for name, item in declared.properties.items()
        if not item.type.nullable
        and item.default is None
        and name not in given
        and not (item.embed is not None and item.embed.source in given)
    ]
    missing = [name for name in declared.endpoints.values() if name not in given] + missing
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        context.report(
            "T12",
            f"{declared.name} needs {names}",
            statement.type_name.span,
            remedy="Assign a value to each.",
        )


# Where


def _where(
    context: Context, where: ast.Expression, declared: NodeType | EdgeType
) -> Expression | None:
    scope = BindingScope(written=_type(declared), fields=_fields(declared, with_ends=True))
    return check_condition(context, scope, where, "write")
