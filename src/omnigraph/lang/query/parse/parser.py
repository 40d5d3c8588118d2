"""Text to syntax tree: queries, their heads, and mutation statements.

Owns the grammar of heads and statements; what stands inside a match, a return or an order is in
``read``. Reports every query that does not parse and goes on at the next ``query``.
"""

from __future__ import annotations

from typing import Final, NoReturn

from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.read import ReadParser
from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.lexer import NAME, STRING, TYPE_NAME, string_value
from omnigraph.lang.syntax.source import Source
from omnigraph.lang.syntax.stream import Recover

ANNOTATIONS: Final = ("description", "instruction")
_UNKNOWN_ANNOTATION: Final = "P104"
_MIXED_BODY: Final = "P105"
_STATEMENT_WORDS: Final = ("insert", "update", "delete")
_READ_WORDS: Final = ("match", "return", "order", "limit")


def parse_queries(text: str | Source, *, name: str = "<query>") -> ast.QueryFile:
    """All queries of a text; raises ``SourceError`` with every syntax error found in it."""
    source = text if isinstance(text, Source) else Source(name, text)
    diagnostics = Diagnostics(source)
    file = parse_source(source, diagnostics)
    diagnostics.raise_errors()
    return file


def parse_source(source: Source, diagnostics: Diagnostics) -> ast.QueryFile:
    """The queries that do parse; what is wrong with the others goes to ``diagnostics``."""
    parser = QueryParser(source, diagnostics)
    queries = tuple(parser.queries())
    return ast.QueryFile(queries, source, tuple(parser.comments))


class QueryParser(ReadParser):
    """Recursive descent over the tokens of one text."""

    __slots__ = ()

    def queries(self) -> list[ast.Query]:
        found: list[ast.Query] = []
        while not self.at_end:
            try:
                found.append(self._query())
            except Recover:
                self.bare_names_are_properties = False
                self.skip_until(self._at_query)
        return found

    def _at_query(self) -> bool:
        """Whether a query starts here; an edge may be called ``query`` too."""
        return (
            self.at_word("query")
            and self.peek(1).kind in (NAME, TYPE_NAME)
            and self.peek(2).kind == "("
        )

    def _query(self) -> ast.Query:
        start = self.expect_word("query")
        name = self.name(NAME, "the query's name")
        opening = self.expect("(")
        parameters = self._parameters()
        parameters_span = self.span_from(opening)
        annotations = self._annotations()
        self.expect("{")
        body: ast.ReadBody | ast.WriteBody
        if self.at_word("match"):
            body = self.read_body()
            if self.current.text in _STATEMENT_WORDS:
                self._refuse_mixture("a query that reads cannot also write")
        else:
            body = self._write_body()
        self.expect("}")
        return ast.Query(
            name, parameters, annotations, body, self.span_from(start), parameters_span
        )

    # The head

    def _parameters(self) -> tuple[ast.Parameter, ...]:
        if self.accept(")"):
            return ()
        found = [self._parameter()]
        while self.accept(","):
            found.append(self._parameter())
        self.expect(")")
        return tuple(found)

    def _parameter(self) -> ast.Parameter:
        start = self.current
        name = self.variable("a parameter such as `$name`")
        self.expect(":")
        kind = self._parameter_type()
        return ast.Parameter(name, kind, self.span_from(start))

    def _parameter_type(self) -> ast.ParameterType:
        start = self.current
        if self.at_word("enum"):
            self.fail(
                "a parameter cannot have an enum type",
                remedy="Declare it as `String`: an enum takes strings.",
            )
        dimension: int | None = None
        is_list = self.accept("[") is not None
        name = self.name(TYPE_NAME, "a type such as `String`")
        if is_list:
            self.expect("]")
        elif name.text == "Vector":
            self.expect("(")
            dimension = self.whole_number("the number of dimensions")
            self.expect(")")
        optional = self.accept("?") is not None
        return ast.ParameterType(name, is_list, dimension, optional, self.span_from(start))

    def _annotations(self) -> tuple[ast.Annotation, ...]:
        found: list[ast.Annotation] = []
        while start := self.accept("@"):
            name = self.name(NAME, "an annotation")
            if name.text not in ANNOTATIONS:
                self.fail_at(
                    name.span,
                    f"a query has no annotation `@{name.text}`",
                    code=_UNKNOWN_ANNOTATION,
                    known=ANNOTATIONS,
                )
            if any(item.name.text == name.text for item in found):
                self.fail_at(
                    name.span,
                    f"`@{name.text}` is given twice",
                    code=_UNKNOWN_ANNOTATION,
                    remedy="Keep one of them.",
                )
            self.expect("(")
            text = string_value(self.expect(STRING))
            self.expect(")")
            found.append(ast.Annotation(name, text, self.span_from(start)))
        return tuple(found)

    # Writing

    def _write_body(self) -> ast.WriteBody:
        statements = [self._statement(first=True)]
        while not self.at("}"):
            statements.append(self._statement(first=False))
        return ast.WriteBody(tuple(statements))

    def _statement(self, *, first: bool) -> ast.Statement:
        if self.at_word("insert"):
            return self._insert()
        if self.at_word("update"):
            return self._update()
        if self.at_word("delete"):
            return self._delete()
        self.try_for_words(*(("match", *_STATEMENT_WORDS) if first else _STATEMENT_WORDS))
        if not first:
            self.try_for("}")
            if self.current.text in _READ_WORDS:
                self._refuse_mixture("a query that writes cannot also read")
        return self.fail()

    def _refuse_mixture(self, message: str) -> NoReturn:
        self.fail(message, code=_MIXED_BODY, remedy="Write two queries: one reads, one writes.")

    def _insert(self) -> ast.Insert:
        start = self.advance()
        type_name = self._written_type()
        assignments = self._assignments()
        return ast.Insert(type_name, assignments, self.span_from(start))

    def _update(self) -> ast.Update:
        start = self.advance()
        type_name = self._written_type()
        self.expect_word("set")
        assignments = self._assignments()
        where = self._where()
        return ast.Update(type_name, assignments, where, self.span_from(start))

    def _delete(self) -> ast.Delete:
        start = self.advance()
        type_name = self._written_type()
        where = self._where()
        return ast.Delete(type_name, where, self.span_from(start))

    def _written_type(self) -> ast.Name:
        return self.name(TYPE_NAME, "a type as the schema spells it")

    def _assignments(self) -> tuple[ast.PropertyValue, ...]:
        """In braces, commas optional. An empty list is for the checker to refuse."""
        self.expect("{")
        self.bare_names_are_properties = True
        found: list[ast.PropertyValue] = []
        while not self.accept("}"):
            found.append(self.property_value())
            self.accept(",")
        self.bare_names_are_properties = False
        return tuple(found)

    def _where(self) -> ast.Expression:
        self.expect_word("where")
        self.bare_names_are_properties = True
        condition = self.expression()
        self.bare_names_are_properties = False
        return condition
