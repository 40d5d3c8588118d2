"""Query texts of earlier versions in today's grammar.

Owns the one rewriting that keeps their meaning: an edge called ``in``, ``and`` or ``or`` between
two variables is written in quotes, because the words have become operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.parser import parse_queries
from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.lexer import lex
from omnigraph.lang.syntax.source import Source, Span


def edge_meant(filter_: ast.Filter, parameters: Collection[str]) -> str | None:
    """The edge of a filter such as ``$a in $b`` that was a traversal.

    Two bare variables are no operands unless both are parameters, so nothing else can be meant.
    """
    match filter_.condition:
        case ast.Comparison(
            operator="in", left=ast.Variable() as left, right=ast.Variable() as right
        ):
            word = "in"
        case ast.Logical(operator=word, operands=(ast.Variable() as left, ast.Variable() as right)):
            pass
        case _:
            return None
    return None if {left.name, right.name} <= set(parameters) else word


def upgrade_queries(text: str, *, name: str = "<query>") -> str:
    """The text with every such edge in quotes; raises ``SourceError`` if it does not parse."""
    file = parse_queries(Source(name, text))
    found = [span for query in file.queries for span in _edges(query, file.source)]
    for span in sorted(found, reverse=True):
        text = f'{text[: span.start]}"{text[span.start : span.end]}"{text[span.end :]}'
    return text


def _edges(query: ast.Query, source: Source) -> Iterator[Span]:
    if isinstance(query.body, ast.WriteBody):
        return
    parameters = {item.name.text for item in query.parameters}
    blocks = [query.body.match]
    while blocks:
        for clause in blocks.pop().clauses:
            if isinstance(clause, ast.Negation):
                blocks.append(clause.block)
            elif isinstance(clause, ast.Filter):
                word = edge_meant(clause, parameters)
                if word is not None:
                    yield _word_in(clause, word, source)


def _word_in(clause: ast.Filter, word: str, source: Source) -> Span:
    """Where the word stands: the first one behind the left variable."""
    left = ast.operands(clause.condition)[0]
    tokens = lex(source, Diagnostics(source)).tokens
    return next(i.span for i in tokens if i.start >= left.span.end and i.text == word)
