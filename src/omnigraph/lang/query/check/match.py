"""Types of match clauses: bindings, traversals, filters, negations.

Owns everything between the braces of a ``match``. Clauses are checked from top to bottom against
the types that ``infer`` found for the whole block, so their order changes neither what is accepted
nor what it means.
"""

from __future__ import annotations

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.check.expression import check_condition
from omnigraph.lang.query.check.infer import infer_types
from omnigraph.lang.query.check.inline import check_inline
from omnigraph.lang.query.check.traversal import check_traversal
from omnigraph.lang.query.checked import CheckedBlock, CheckedTraversal
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import EntityType, Expression
from omnigraph.lang.query.upgrade import edge_meant


def check_block(
    context: Context, block: ast.Block, outer: BindingScope | None
) -> tuple[CheckedBlock, BindingScope]:
    """The clauses of one block, and the variables that can be used behind it."""
    scope = BindingScope(outer)
    infer_types(context.schema, block, scope)
    traversals: list[CheckedTraversal] = []
    conditions: list[Expression] = []
    negations: list[CheckedBlock] = []
    edge_variables: set[str] = set()
    for clause in block.clauses:
        match clause:
            case ast.Binding():
                conditions.extend(_binding(context, scope, clause))
            case ast.Traversal():
                found = check_traversal(context, scope, clause, edge_variables)
                if found is not None:
                    traversals.append(found)
            case ast.Filter() if (edge := _edge_meant(context, clause)) is not None:
                context.report(
                    "T7",
                    f"`{edge}` is an operator, and a whole node is no operand of it",
                    clause.span,
                    remedy=f'Write the edge in quotes: `"{edge}"`, as `fmt --upgrade` does.',
                )
            case ast.Filter():
                condition = check_condition(context, scope, clause.condition, "condition")
                if condition is not None:
                    conditions.append(condition)
            case ast.Negation():
                negations.append(_negation(context, scope, clause))
    checked = CheckedBlock(scope.local, tuple(traversals), tuple(conditions), tuple(negations))
    return checked, scope


def _edge_meant(context: Context, clause: ast.Filter) -> str | None:
    """The edge of the schema that a filter such as ``$a in $b`` followed in earlier versions."""
    word = edge_meant(clause, context.parameters)
    return None if word is None or context.schema.edge(word) is None else word


def _binding(context: Context, scope: BindingScope, clause: ast.Binding) -> list[Expression]:
    variable, name = clause.variable, clause.type_name.text
    node = context.schema.nodes.get(name)
    if node is None:
        _report_unknown_type(context, clause.type_name)
        return []
    if variable.is_anonymous:
        context.report(
            "T37",
            "`$_` stands for an end of an edge and cannot be given a type",
            variable.span,
            remedy="Give the variable a name.",
        )
        return []
    bound = scope.find(variable.text)
    if bound is not None and bound != EntityType("node", name):
        _report_rebound(context, variable, bound, name)
        return []
    conditions: list[Expression] = []
    for item in clause.properties:
        condition = check_inline(context, scope, variable.text, node, item)
        if condition is not None:
            conditions.append(condition)
    return conditions


def _report_unknown_type(context: Context, name: ast.Name) -> None:
    schema = context.schema
    if name.text in schema.interfaces:
        message = f"{name.text} is an interface, and only node types can be bound"
        context.report("T1", message, name.span, remedy="Bind a node type that implements it.")
    elif name.text in schema.edges:
        word = name.text[0].lower() + name.text[1:]
        message = f"{name.text} is an edge type, and only node types can be bound"
        remedy = f"Traverse it, and name the edge if you need it: `$a $edge:{word} $b`."
        context.report("T1", message, name.span, remedy=remedy)
    else:
        message = f"there is no node type {name.text}"
        context.report_unknown("T1", message, name.span, name.text, schema.nodes)


def _report_rebound(context: Context, variable: ast.Name, bound: EntityType, name: str) -> None:
    if bound.kind == "edge":
        context.report(
            "T23",
            f"`${variable.text}` is an edge {bound} and cannot be bound to a node type as well",
            variable.span,
            remedy="Use another variable for the node.",
        )
    else:
        context.report(
            "T33",
            f"`${variable.text}` is a {bound} and cannot be a {name} as well",
            variable.span,
            remedy="Use another variable.",
        )


def _negation(context: Context, scope: BindingScope, clause: ast.Negation) -> CheckedBlock:
    errors_before = context.diagnostics.error_count
    checked, inner = check_block(context, clause.block, scope)
    scope.hidden.update(inner.local, inner.hidden)
    if context.diagnostics.error_count == errors_before and not _mentions_outer(
        context, inner, clause.block
    ):
        context.report(
            "T9",
            "this `not` mentions no variable bound outside it",
            clause.span,
            remedy="Connect it to what it is about, for example with a traversal.",
        )
    return checked


def _mentions_outer(context: Context, scope: BindingScope, block: ast.Block) -> bool:
    """Whether a block, or a negation inside it, uses a variable from around it."""
    return any(scope.is_outer(name) for name in _mentioned(context, block))


def _mentioned(context: Context, block: ast.Block) -> set[str]:
    """All variables written in a block; a bare name of a parameter is the parameter."""
    found: set[str] = set()
    blocks = [block]
    while blocks:
        for clause in blocks.pop().clauses:
            match clause:
                case ast.Binding():
                    found.add(clause.variable.text)
                    for item in clause.properties:
                        found |= _in_expression(context, item.value)
                case ast.Traversal():
                    found.update((clause.left.text, clause.right.text))
                case ast.Filter():
                    found |= _in_expression(context, clause.condition)
                case ast.Negation():
                    blocks.append(clause.block)
    return found


def _in_expression(context: Context, expression: ast.Expression) -> set[str]:
    found: set[str] = set()
    for part in ast.parts(expression):
        match part:
            case ast.PropertyAccess(variable=variable):
                found.add(variable.text)
            case ast.SystemField(variable=ast.Name(text=name)):
                found.add(name)
            case ast.Variable(name=name) if name not in context.parameters:
                found.add(name)
            case _:
                pass
    return found
