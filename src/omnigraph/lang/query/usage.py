"""The expressions of a query, and which parameters they use.

Owns the walk over a whole syntax tree; answers for lint and the formatter.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.query.parse import ast


def unused_parameters(query: ast.Query) -> list[str]:
    """Declared parameters whose name no expression of the query mentions, in declared order."""
    used = {name for part in expressions_of(query) for name in _variables(part)}
    return [item.name.text for item in query.parameters if item.name.text not in used]


def expressions_of(query: ast.Query) -> Iterator[ast.Expression]:
    """The outermost expressions of a query."""
    if isinstance(query.body, ast.WriteBody):
        for statement in query.body.statements:
            if not isinstance(statement, ast.Delete):
                yield from (item.value for item in statement.assignments)
            if not isinstance(statement, ast.Insert):
                yield statement.where
        return
    yield from _block_parts(query.body.match)
    yield from (item.expression for item in query.body.returns)
    yield from (item.expression for item in query.body.order)
    if query.body.limit is not None:
        counts = (query.body.limit.count, query.body.limit.offset)
        yield from (item for item in counts if isinstance(item, ast.Variable))


def _block_parts(block: ast.Block) -> Iterator[ast.Expression]:
    for clause in block.clauses:
        match clause:
            case ast.Binding():
                yield from (item.value for item in clause.properties)
            case ast.Filter():
                yield clause.condition
            case ast.Negation():
                yield from _block_parts(clause.block)
            case ast.Traversal():
                pass


def _variables(expression: ast.Expression) -> Iterator[str]:
    """Names of bare variables inside an expression."""
    return (part.name for part in ast.parts(expression) if isinstance(part, ast.Variable))
