"""The body of a query that reads: match clauses, return items, order items, limit.

Owns the one hard question of the grammar: which clause starts at a variable. Two tokens of looking
ahead decide it, and a clause once recognised is never tried as another one.
"""

from __future__ import annotations

from typing import Final

from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.expression import (
    BOOLEANS,
    COMPARISONS,
    TEXT_OPERATORS,
    ExpressionParser,
)
from omnigraph.lang.query.parse.words import RESERVED
from omnigraph.lang.syntax.lexer import NAME, STRING, TYPE_NAME, VARIABLE, string_value

_NEAREST_DIRECTION: Final = "P106"


class ReadParser(ExpressionParser):
    __slots__ = ()

    def read_body(self) -> ast.ReadBody:
        self.expect_word("match")
        match = self.block()
        start = self.expect_word("return")
        distinct = self.accept_word("distinct") is not None
        returns = self._return_items()
        returns_span = self.span_from(start)
        order: tuple[ast.OrderItem, ...] = ()
        order_span = None
        if word := self.accept_word("order"):
            order = self._order_items()
            order_span = self.span_from(word)
        limit = self._limit()
        return ast.ReadBody(match, returns, order, limit, distinct, returns_span, order_span)

    def _limit(self) -> ast.Limit | None:
        start = self.current
        count = self._rows() if self.accept_word("limit") else None
        offset = self._rows() if self.accept_word("offset") else None
        if count is None and offset is None:
            return None
        return ast.Limit(count, offset, self.span_from(start))

    def _rows(self) -> int | ast.Variable:
        """A number of rows: digits or a parameter."""
        token = self.current
        if self.accept(VARIABLE):
            return ast.Variable(token.text[1:], token.span)
        return self.whole_number("a whole number of rows")

    # Match

    def block(self) -> ast.Block:
        start = self.expect("{")
        self.enter()
        clauses = [self._clause()]
        while not self.accept("}"):
            clauses.append(self._clause())
        self.leave()
        return ast.Block(tuple(clauses), self.span_from(start))

    def _clause(self) -> ast.Clause:
        token, following = self.current, self.peek()
        if token.kind == NAME and token.text == "not" and following.kind == "{":
            self.advance()
            return ast.Negation(self.block(), self.span_from(token))
        if token.kind == VARIABLE:
            if following.kind == ":":
                return self._binding()
            if self._at_traversal():
                return self._traversal()
        return self._filter()

    def _at_traversal(self) -> bool:
        """Whether the variable here is the left end of a traversal.

        ``$a word $b`` is one unless the word is ``in``, ``and`` or ``or``. Between bare variables
        ``contains`` and ``starts_with`` are edges; a property behind them makes a comparison.
        """
        word, then = self.peek(1), self.peek(2)
        if word.kind == "<":
            return then.kind in (NAME, TYPE_NAME, STRING) and self.peek(3).kind == ">"
        if word.kind == STRING:
            return True
        if word.kind != NAME:
            return word.kind in (TYPE_NAME, VARIABLE)
        if word.text in TEXT_OPERATORS:
            return then.kind == "{" or (then.kind == VARIABLE and self.peek(3).kind != ".")
        if word.text in ("in", "and", "or"):
            return then.kind == "{"
        return word.text not in RESERVED or then.kind in ("{", VARIABLE)

    def _binding(self) -> ast.Binding:
        start = self.current
        variable = self.variable()
        self.expect(":")
        type_name = self.name(TYPE_NAME, "a node type, which starts with an upper-case letter")
        properties: list[ast.PropertyValue] = []
        if self.accept("{"):
            properties.append(self.property_value())
            while not self.accept("}"):
                self.expect(",")
                if self.accept("}"):
                    break
                properties.append(self.property_value())
        return ast.Binding(variable, type_name, tuple(properties), self.span_from(start))

    def _traversal(self) -> ast.Traversal:
        start = self.current
        left = self.variable()
        edge_variable = None
        if self.at(VARIABLE):
            edge_variable = self.variable()
            self.expect(":")
        undirected = self.accept("<") is not None
        edge = self._edge_word()
        if undirected:
            self.expect(">")
        hops = self._hops() if self.at("{") else None
        right = self.variable()
        return ast.Traversal(
            left, edge, right, edge_variable, undirected, hops, self.span_from(start)
        )

    def _edge_word(self) -> ast.Name:
        token = self.current
        if token.kind == TYPE_NAME:
            self.fail(
                f"an edge is written with a lower-case first letter, not `{token.text}`",
                hint=f"did you mean `{token.text[0].lower()}{token.text[1:]}`?",
            )
        if token.kind == NAME and token.text == "not":
            self.fail(
                "`not` is not an edge",
                remedy="Write the negation around the traversal: `not { $a edge $b }`.",
            )
        if token.kind == STRING:
            self.advance()
            return ast.Name(string_value(token), token.span)
        return self.name(NAME, "an edge, which starts with a lower-case letter")

    def _hops(self) -> ast.Hops:
        start = self.advance()
        minimum = self.whole_number("the smallest number of hops")
        self.expect(",")
        maximum = None if self.at("}") else self.whole_number("the largest number of hops")
        self.expect("}")
        return ast.Hops(minimum, maximum, self.span_from(start))

    def _filter(self) -> ast.Filter:
        start = self.current
        if start.kind in ("}", NAME) and not self._at_filter_word():
            self.try_for_words("not")
            self.try_for("a binding", "a traversal", "a comparison", "a text search")
            self.fail()
        return ast.Filter(self.expression(), self.span_from(start))

    def _at_filter_word(self) -> bool:
        """Whether a name here can start a condition; else the clause itself is unreadable."""
        following = self.peek()
        return (
            self.current.text in (*BOOLEANS, "not", "null", "case")
            or following.kind in ("(", *COMPARISONS)
            or following.text in TEXT_OPERATORS
        )

    # Return, order

    def _return_items(self) -> tuple[ast.ReturnItem, ...]:
        self.expect("{")
        items = [self._return_item()]
        while not self.accept("}"):
            items.append(self._return_item())
        return tuple(items)

    def _return_item(self) -> ast.ReturnItem:
        start = self.current
        expression = self.expression()
        alias = None
        if self.accept_word("as"):
            alias = self.name(NAME, "a column name, which starts with a lower-case letter")
        span = self.span_from(start)
        self.accept(",")
        return ast.ReturnItem(expression, alias, span)

    def _order_items(self) -> tuple[ast.OrderItem, ...]:
        self.expect("{")
        items = [self._order_item()]
        while self.accept(","):
            items.append(self._order_item())
        self.expect("}")
        return tuple(items)

    def _order_item(self) -> ast.OrderItem:
        start = self.current
        expression = self._reserved_alias() or self.expression()
        direction: ast.Direction | None = None
        if self.at_word("asc") or self.at_word("desc"):
            if isinstance(expression, ast.Call) and expression.function.text == "nearest":
                self.fail(
                    "`nearest` always puts the nearest first",
                    code=_NEAREST_DIRECTION,
                    remedy=f"Remove `{self.current.text}`.",
                )
            direction = "asc" if self.advance().text == "asc" else "desc"
        else:
            self.try_for_words("asc", "desc")
        nulls: ast.NullPlace | None = None
        if self.accept_word("nulls"):
            if not self.at_word("first"):
                self.try_for_words("first")
                nulls = "last" if self.expect_word("last") else None
            else:
                self.advance()
                nulls = "first"
        return ast.OrderItem(expression, direction, nulls, self.span_from(start))

    def _reserved_alias(self) -> ast.AliasReference | None:
        """A column that is called like an operator, where nothing follows it but a direction."""
        token, following = self.current, self.peek()
        if token.kind != NAME or token.text not in RESERVED:
            return None
        directions = ("asc", "desc", "nulls")
        if following.kind not in (",", "}") and following.text not in directions:
            return None
        self.advance()
        return ast.AliasReference(token.text, token.span)
