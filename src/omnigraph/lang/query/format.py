"""The formatter for `.gq` texts.

Owns the layout of queries: which tokens share a line, and where spaces and commas stand. Comments,
single empty lines and the spelling of every literal are kept. Formatting is idempotent and never
changes what a query means; a text that does not parse is refused, not guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Protocol

from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.parser import QueryParser
from omnigraph.lang.query.parse.words import RESERVED
from omnigraph.lang.query.usage import expressions_of
from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.lexer import NAME, TYPE_NAME, Token
from omnigraph.lang.syntax.printer import INDENT, LINE_WIDTH_MAX, Printer
from omnigraph.lang.syntax.source import Source, Span

_BEFORE_PARENTHESES: Final = RESERVED | {"where", "when", "then", "else"}
"""Names that are no function, so that a space separates them from a parenthesis."""


def format_queries(text: str | Source, *, name: str = "<query>") -> str:
    """The text laid out afresh; raises ``SourceError`` if it does not parse."""
    source = text if isinstance(text, Source) else Source(name, text)
    diagnostics = Diagnostics(source)
    parser = QueryParser(source, diagnostics)
    queries = parser.queries()
    diagnostics.raise_errors()
    tokens = _with_regular_commas(parser.tokens, queries)
    return _QueryFormatter(source, tokens, parser.comments).file(queries)


class _Spanned(Protocol):
    @property
    def span(self) -> Span: ...


class _QueryFormatter:
    """Walks the tree and hands the tokens of each line to the printer."""

    def __init__(self, source: Source, tokens: Sequence[Token], comments: Sequence[Token]) -> None:
        self._tokens = tokens
        self._starts = {token.start: at for at, token in enumerate(tokens) if token.text != ","}
        self._tight: set[int] = set()
        """Starts of tokens that touch the one before, where the tokens alone do not tell."""
        self._printer = Printer(source, tokens, comments, self._space)

    def file(self, queries: Sequence[ast.Query]) -> str:
        for position, query in enumerate(queries):
            self._note_signs(query)
            self._query(query, separate=position > 0)
        return self._printer.finish()

    # Layout

    def _query(self, query: ast.Query, *, separate: bool) -> None:
        first = self._index(query.span)
        opening = self._after(query.parameters_span)
        parameters = [item.span for item in query.parameters]
        if query.annotations:
            self._list(first, opening, parameters, 0, separate=separate)
            for item in query.annotations:
                self._whole(item.span, 1)
            opening = self._after(query.annotations[-1].span)
            self._printer.line(opening, opening + 1, 0)
        else:
            self._list(first, opening + 1, parameters, 0, separate=separate)
        if isinstance(query.body, ast.ReadBody):
            self._read_body(query.body, opening + 1)
        else:
            for statement in query.body.statements:
                self._statement(statement)
        closing = self._after(query.span) - 1
        self._printer.line(closing, closing + 1, 0)

    def _read_body(self, body: ast.ReadBody, first: int) -> None:
        for hops in _traversals(body.match):
            self._note_tight(hops)
        self._printer.line(first, first + 2, 1)
        self._clauses(body.match, 2)
        closing = self._after(body.match.span) - 1
        self._printer.line(closing, closing + 1, 1)
        self._listed(body.returns_span, body.returns, 1)
        if body.order_span is not None:
            self._listed(body.order_span, body.order, 1)
        if body.limit is not None:
            self._whole(body.limit.span, 1)

    def _clauses(self, block: ast.Block, indent: int) -> None:
        for clause in block.clauses:
            if isinstance(clause, ast.Negation):
                self._negation(clause, indent)
            elif isinstance(clause, ast.Binding):
                self._listed(clause.span, clause.properties, indent)
            else:
                self._whole(clause.span, indent)

    def _negation(self, clause: ast.Negation, indent: int) -> None:
        first, last = self._index(clause.span), self._after(clause.span)
        inner = clause.block.clauses
        is_simple = len(inner) == 1 and not isinstance(inner[0], ast.Negation)
        if is_simple and self._fits(first, last, indent):
            self._printer.line(first, last, indent)
            return
        self._printer.line(first, first + 2, indent)
        self._clauses(clause.block, indent + 1)
        self._printer.line(last - 1, last, indent)

    def _statement(self, statement: ast.Statement) -> None:
        if isinstance(statement, ast.Delete):
            self._whole(statement.span, 1)
        else:
            self._listed(statement.span, statement.assignments, 1)

    def _listed(self, span: Span, items: Sequence[_Spanned], indent: int) -> None:
        """Something with a list in it: on one line if it fits, else an item to a line."""
        first, last = self._index(span), self._after(span)
        self._list(first, last, [item.span for item in items], indent)

    def _list(
        self, first: int, last: int, items: Sequence[Span], indent: int, *, separate: bool = False
    ) -> None:
        if not items or self._fits(first, last, indent):
            self._printer.line(first, last, indent, separate=separate)
            return
        starts = [self._index(item) for item in items]
        ends = [*starts[1:], self._after(items[-1])]
        self._printer.line(first, starts[0], indent, separate=separate)
        for start, end in zip(starts, ends, strict=True):
            self._printer.line(start, end, indent + 1)
        self._printer.line(ends[-1], last, indent)

    def _whole(self, span: Span, indent: int) -> None:
        self._printer.line(self._index(span), self._after(span), indent)

    # Tokens

    def _index(self, span: Span) -> int:
        return self._starts[span.start]

    def _after(self, span: Span) -> int:
        """The index of the first token after a span and its comma."""
        at = self._index(span)
        while self._tokens[at].start < span.end and self._tokens[at].text:
            at += 1
        return at

    def _fits(self, first: int, last: int, indent: int) -> bool:
        """Whether these tokens make one line: short enough, and no comment between them."""
        if any(self._printer.has_comment(at) for at in range(first + 1, last)):
            return False
        shown = self._tokens[first:last]
        width = len(INDENT) * indent + sum(len(token.text) for token in shown)
        width += sum(self._space(*pair) for pair in pairwise(shown))
        return width <= LINE_WIDTH_MAX and not any("\n" in token.text for token in shown)

    def _note_tight(self, traversal: ast.Traversal) -> None:
        """``$w:edge``, ``<edge>`` and ``{1,2}`` are written without spaces."""
        edge = self._index(traversal.edge.span)
        if traversal.edge_variable is not None:
            name = self._index(traversal.edge_variable.span)
            self._tight.update(self._tokens[at].start for at in range(name + 1, edge + 1))
        if traversal.undirected:
            self._tight.update((self._tokens[edge].start, self._tokens[edge + 1].start))
        if traversal.hops is not None:
            first, last = self._index(traversal.hops.span), self._after(traversal.hops.span)
            self._tight.update(self._tokens[at].start for at in range(first, last))

    def _note_signs(self, query: ast.Query) -> None:
        """The sign of a number or of a value is written without a space."""
        for expression in expressions_of(query):
            for part in ast.parts(expression):
                if isinstance(part, ast.Minus | ast.LiteralValue):
                    sign = self._index(part.span)
                    if self._tokens[sign].kind == "-":
                        self._tight.add(self._tokens[sign + 1].start)

    def _space(self, before: Token, token: Token) -> bool:
        if token.start in self._tight and token.start != token.end:
            return False
        if before.kind in ("(", "[", ".", "@") or token.kind in (")", "]", ".", ",", ":", "?"):
            return False
        is_call = before.kind == TYPE_NAME or (
            before.kind == NAME and before.text not in _BEFORE_PARENTHESES
        )
        return not (token.kind == "(" and is_call)


def _with_regular_commas(tokens: Sequence[Token], queries: Iterable[ast.Query]) -> list[Token]:
    """The tokens with one comma between items and none behind the last, where commas are free."""
    wanted: dict[int, bool] = {}
    for query in queries:
        for spans in _free_lists(query.body):
            wanted.update((span.end, True) for span in spans[:-1])
            wanted[spans[-1].end] = False
    regular: list[Token] = []
    skip = False
    for token, following in pairwise([*tokens, tokens[-1]]):
        if skip:
            skip = False
            continue
        regular.append(token)
        comma = wanted.get(token.end)
        if comma is not None and token.end > token.start:
            skip = following.kind == ","
            if comma:
                at = following if skip else Token(",", ",", token.end, token.end)
                regular.append(at)
    return regular


def _free_lists(body: ast.ReadBody | ast.WriteBody) -> Iterator[list[Span]]:
    """The spans of items in every list whose commas are optional."""
    if isinstance(body, ast.ReadBody):
        yield [item.span for item in body.returns]
        for binding in _bindings(body.match):
            if binding.properties:
                yield [item.span for item in binding.properties]
    else:
        for statement in body.statements:
            if not isinstance(statement, ast.Delete) and statement.assignments:
                yield [item.span for item in statement.assignments]


def _all_clauses(block: ast.Block) -> Iterator[ast.Clause]:
    for clause in block.clauses:
        yield clause
        if isinstance(clause, ast.Negation):
            yield from _all_clauses(clause.block)


def _traversals(block: ast.Block) -> Iterator[ast.Traversal]:
    return (item for item in _all_clauses(block) if isinstance(item, ast.Traversal))


def _bindings(block: ast.Block) -> Iterator[ast.Binding]:
    return (item for item in _all_clauses(block) if isinstance(item, ast.Binding))
