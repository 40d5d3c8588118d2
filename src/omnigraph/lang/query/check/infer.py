"""Type inference: the type of each variable of a block.

Independent of the order of clauses: explicit bindings first, then edges whose ends have a unique
type, then propagation along the other edges. Reports nothing: contradictions are found when the
clauses are checked against the inferred types.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TypeAlias

from omnigraph.lang.query.check.context import BindingScope
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import EntityType
from omnigraph.lang.schema import AcceptedSchema, EdgeType

_Step: TypeAlias = tuple[ast.Traversal, EdgeType]


def infer_types(schema: AcceptedSchema, block: ast.Block, scope: BindingScope) -> None:
    """Fill ``scope`` with every variable that ``block`` binds."""
    steps: list[_Step] = []
    for clause in block.clauses:
        if isinstance(clause, ast.Binding):
            if clause.type_name.text in schema.nodes:
                _bind(scope, clause.variable, EntityType("node", clause.type_name.text))
            else:
                scope.unknown.add(clause.variable.text)
        elif isinstance(clause, ast.Traversal):
            edge = schema.edge(clause.edge.text)
            if edge is not None:
                steps.append((clause, edge))
            else:
                scope.unknown.update((clause.left.text, clause.right.text))
                if clause.edge_variable is not None:
                    scope.unknown.add(clause.edge_variable.text)
    for clause, edge in steps:
        if clause.edge_variable is not None:
            _bind(scope, clause.edge_variable, EntityType("edge", edge.name))
    _infer_ends(scope, steps)


def _bind(scope: BindingScope, variable: ast.Name, kind: EntityType) -> bool:
    """Whether the variable is new. The first binding counts, and outer ones before all."""
    if variable.is_anonymous or scope.find(variable.text) is not None:
        return False
    scope.local[variable.text] = kind
    return True


def _infer_ends(scope: BindingScope, steps: list[_Step]) -> None:
    """Give both ends of every traversal a type, in time linear in their number."""
    asymmetric: list[_Step] = []
    by_variable: dict[str, list[_Step]] = defaultdict(list)
    for clause, edge in steps:
        if edge.source == edge.target:
            _bind_written(scope, clause, edge)
        else:
            asymmetric.append((clause, edge))
            by_variable[clause.left.text].append((clause, edge))
            by_variable[clause.right.text].append((clause, edge))
    pending = deque(asymmetric)
    while pending:
        clause, edge = pending.popleft()
        for known, other in ((clause.left, clause.right), (clause.right, clause.left)):
            kind = None if known.is_anonymous else scope.find(known.text)
            opposite = _opposite(edge, kind)
            if opposite is not None and _bind(scope, other, opposite):
                pending.extend(by_variable[other.text])
    undecided = [
        (clause, edge)
        for clause, edge in asymmetric
        if scope.find(clause.left.text) is None and scope.find(clause.right.text) is None
    ]
    for clause, edge in (*undecided, *asymmetric):
        _bind_written(scope, clause, edge)


def _opposite(edge: EdgeType, kind: EntityType | None) -> EntityType | None:
    """The type at the other end of an edge between two types, if ``kind`` is at one of them."""
    if kind is None or kind.kind != "node":
        return None
    if kind.name == edge.source:
        return EntityType("node", edge.target)
    return EntityType("node", edge.source) if kind.name == edge.target else None


def _bind_written(scope: BindingScope, clause: ast.Traversal, edge: EdgeType) -> None:
    """Read a traversal as it stands: from the source on the left to the target on the right."""
    _bind(scope, clause.left, EntityType("node", edge.source))
    _bind(scope, clause.right, EntityType("node", edge.target))
