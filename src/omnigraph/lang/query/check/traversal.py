"""Types of traversals: edges, their ends, hop bounds and edge variables.

Owns which end of an edge each variable stands at.
"""

from __future__ import annotations

from typing import Final

from omnigraph.lang.query.check.context import BindingScope, Context
from omnigraph.lang.query.checked import CheckedTraversal
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import EntityType
from omnigraph.lang.schema import EdgeType

HOPS_MAX: Final = 2**31 - 1
"""What a hop bound may be at most; engines count hops in 32 bits."""

_OPERATOR_WORDS: Final = ("contains", "starts_with")


def check_traversal(
    context: Context, scope: BindingScope, clause: ast.Traversal, edge_variables: set[str]
) -> CheckedTraversal | None:
    """One traversal; ``edge_variables`` collects those of the block, to find repeated ones."""
    edge = context.schema.edge(clause.edge.text)
    if edge is None:
        _report_unknown_edge(context, clause)
        return None
    errors_before = context.diagnostics.error_count
    if clause.undirected and edge.source != edge.target:
        context.report(
            "T22",
            f"{edge.name} leads from {edge.source} to {edge.target}, so it has a direction",
            clause.edge.span,
            remedy=f"Write `{clause.edge.text}` without `<` and `>`.",
        )
    hops = _hops(context, clause)
    _check_edge_variable(context, scope, clause, edge_variables)
    if context.diagnostics.error_count != errors_before:
        return None
    is_reversed = _orientation(context, scope, clause, edge)
    if is_reversed is None:
        return None
    ends = (_end(clause.left), _end(clause.right))
    source, target = reversed(ends) if is_reversed else ends
    min_hops, max_hops = hops
    return CheckedTraversal(
        edge=EntityType("edge", edge.name),
        source=source,
        target=target,
        source_type=EntityType("node", edge.source),
        target_type=EntityType("node", edge.target),
        undirected=clause.undirected,
        min_hops=min_hops,
        max_hops=max_hops if edge.source == edge.target else 1,
        edge_variable=None if clause.edge_variable is None else _end(clause.edge_variable),
    )


def _end(name: ast.Name) -> str | None:
    return None if name.is_anonymous else name.text


def _report_unknown_edge(context: Context, clause: ast.Traversal) -> None:
    word = clause.edge.text
    known = [name[0].lower() + name[1:] for name in context.schema.edges]
    remedy = None
    if word in _OPERATOR_WORDS:
        remedy = f"To compare with `{word}`, put a property or a literal on the left."
    context.report_unknown(
        "T4", f"there is no edge `{word}`", clause.edge.span, word, known, remedy=remedy
    )


def _hops(context: Context, clause: ast.Traversal) -> tuple[int, int]:
    hops = clause.hops
    if hops is None:
        return 1, 1
    maximum = hops.maximum
    problem = None
    if hops.minimum < 1:
        problem = "a traversal takes at least one hop"
    elif maximum is None:
        problem = "a traversal needs a largest number of hops"
    elif maximum < hops.minimum:
        problem = f"at least {hops.minimum} and at most {maximum} hops cannot be"
    elif maximum > HOPS_MAX:
        problem = f"a traversal takes at most {HOPS_MAX} hops"
    if problem is not None:
        remedy = "Write `{1,3}` for one to three hops."
        context.report("T15", problem, hops.span, remedy=remedy)
    return hops.minimum, maximum or hops.minimum


def _check_edge_variable(
    context: Context, scope: BindingScope, clause: ast.Traversal, edge_variables: set[str]
) -> None:
    variable = clause.edge_variable
    if variable is None:
        return
    name = variable.text
    if clause.hops is not None:
        context.report(
            "T23",
            f"`${name}` names one edge, but this traversal may take several hops",
            clause.hops.span,
            remedy="Remove the hop bounds or the edge variable.",
        )
    if variable.is_anonymous:
        return
    if name in (clause.left.text, clause.right.text):
        problem = f"`${name}` cannot be both the edge and one of its ends"
    elif name in edge_variables:
        problem = f"`${name}` already names another edge"
    elif scope.is_outer(name) or scope.find(name) != _edge_type(context, clause):
        problem = f"`${name}` is already bound to something else"
    else:
        edge_variables.add(name)
        return
    context.report("T23", problem, variable.span, remedy="Use another name for the edge.")


def _edge_type(context: Context, clause: ast.Traversal) -> EntityType | None:
    edge = context.schema.edge(clause.edge.text)
    return None if edge is None else EntityType("edge", edge.name)


def _orientation(
    context: Context, scope: BindingScope, clause: ast.Traversal, edge: EdgeType
) -> bool | None:
    """Whether the right variable stands at the source; None after reporting a wrong end."""
    left, right = _type_of(scope, clause.left), _type_of(scope, clause.right)
    for variable, kind in ((clause.left, left), (clause.right, right)):
        if kind is not None and kind.kind == "edge":
            context.report(
                "T23",
                f"the edge `${variable.text}` cannot be an end of another edge",
                variable.span,
                remedy="Use a node variable as the end.",
            )
            return None
    if _fits(left, edge.source) and _fits(right, edge.target):
        return False
    if _fits(left, edge.target) and _fits(right, edge.source):
        return True
    _report_wrong_end(context, clause, edge, left, right)
    return None


def _type_of(scope: BindingScope, variable: ast.Name) -> EntityType | None:
    return None if variable.is_anonymous else scope.find(variable.text)


def _fits(kind: EntityType | None, name: str) -> bool:
    return kind is None or kind.name == name


def _report_wrong_end(
    context: Context,
    clause: ast.Traversal,
    edge: EdgeType,
    left: EntityType | None,
    right: EntityType | None,
) -> None:
    ends = (edge.source, edge.target)
    wrong, kind = clause.left, left
    if kind is None or (kind.name in ends and right is not None):
        wrong, kind = clause.right, right
    context.report(
        "T5",
        f"{edge.name} leads from {edge.source} to {edge.target}, and `${wrong.text}` is a {kind}",
        wrong.span,
        remedy="Check the variable's type; if it has none, bind it: `$variable: Type`.",
    )
