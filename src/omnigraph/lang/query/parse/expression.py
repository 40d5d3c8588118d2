"""Expressions: one grammar for filters, inline matches, results, order and mutations.

Owns precedence, literals, calls, and the reserved words. A bare name is the alias of a column in a
query that reads, and a property of the entity at hand in a mutation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn, cast

from omnigraph.lang.query.functions import FUNCTIONS, LITERAL_WORDS, Function
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.words import RESERVED
from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.lexer import (
    DECIMAL,
    EXPONENT,
    INTEGER,
    NAME,
    STRING,
    TYPE_NAME,
    VARIABLE,
    Token,
    string_value,
)
from omnigraph.lang.syntax.source import Source, Span
from omnigraph.lang.syntax.stream import TokenStream

UNKNOWN_FUNCTION: Final = "P101"
ARGUMENT_COUNT: Final = "P102"
NO_SUCH_LITERAL: Final = "P103"
RESERVED_WORD: Final = "P107"
CHAINED_COMPARISON: Final = "P108"

COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
TEXT_OPERATORS: Final = ("contains", "starts_with")
BOOLEANS: Final = ("true", "false")
NUMBERS: Final = (INTEGER, DECIMAL, EXPONENT)

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT = range(1, 7)
_LEVELS: Final[Mapping[str, int]] = {
    "or": _OR,
    "and": _AND,
    "is": _COMPARISON,
    **dict.fromkeys((*COMPARISONS, *TEXT_OPERATORS, "in"), _COMPARISON),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/%", _PRODUCT),
}
"""How tightly each infix operator binds. Comparisons do not chain."""


class ExpressionParser(TokenStream):
    __slots__ = ("bare_names_are_properties",)

    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        super().__init__(source, diagnostics)
        self.bare_names_are_properties = False

    # Names

    def name(self, kind: str, what: str) -> ast.Name:
        token = self.expect(kind, what)
        return ast.Name(token.text, token.span)

    def variable(self, what: str = "a variable such as `$name`") -> ast.Name:
        token = self.expect(VARIABLE, what)
        return ast.Name(token.text[1:], token.span)

    def property_name(self) -> ast.Name:
        return self.name(NAME, "a property, which starts with a lower-case letter")

    def fail_at(
        self,
        span: Span,
        message: str,
        *,
        code: str,
        known: Iterable[str] = (),
        remedy: str | None = None,
    ) -> NoReturn:
        """Give up because of something already taken; ``known`` is what it could have been."""
        known = tuple(known)
        hint = self.diagnostics.did_you_mean(self.source.slice(span), known)
        if hint is None:
            self.try_for(*known)
        self.fail(message, code=code, span=span, hint=hint, remedy=remedy)

    # Operators

    def expression(self) -> ast.Expression:
        return self._climb(_OR)

    def property_value(self) -> ast.PropertyValue:
        start = self.current
        name = self.property_name()
        self.expect(":")
        return ast.PropertyValue(name, self.expression(), self.span_from(start))

    def _climb(self, lowest: int) -> ast.Expression:
        """An expression of operators that bind at least as tightly as ``lowest``."""
        start = self.current
        left = self._prefix(lowest)
        depth = 0
        while (level := self._level()) >= lowest:
            if level == _COMPARISON:
                left = self._comparison(left, start)
                continue
            operator = self.advance().text
            if level <= _AND:
                left = self._logical(cast(ast.LogicalOperator, operator), level, left, start)
                continue
            depth += 1
            self.enter()
            right = self._climb(level + 1)
            kind = cast(ast.ArithmeticOperator, operator)
            left = ast.Arithmetic(kind, left, right, self.span_from(start))
        for _ in range(depth):
            self.leave()
        return left

    def _level(self) -> int:
        """How tightly the operator here binds; 0 where there is none.

        A word before a colon is a name, as in ``or: value``. Before a parenthesis ``contains`` and
        ``starts_with`` are calls, which begin another clause.
        """
        token = self.current
        level = _LEVELS.get(token.text, 0)
        if not level or token.kind != NAME:
            return level
        following = self.peek().kind
        if following == ":" or (following == "(" and token.text in TEXT_OPERATORS):
            return 0
        return level

    def _logical(
        self, operator: ast.LogicalOperator, level: int, first: ast.Expression, start: Token
    ) -> ast.Logical:
        operands = [first, self._climb(level + 1)]
        while self._level() == level:
            self.advance()
            operands.append(self._climb(level + 1))
        return ast.Logical(operator, tuple(operands), self.span_from(start))

    def _comparison(self, left: ast.Expression, start: Token) -> ast.Expression:
        operator = self.advance().text
        found: ast.Expression
        if operator == "is":
            negated = self.accept_word("not") is not None
            self.expect_word("null")
            found = ast.NullTest(left, negated, self.span_from(start))
        else:
            right = self._climb(_COMPARISON + 1)
            kind = cast(ast.ComparisonOperator, operator)
            found = ast.Comparison(kind, left, right, self.span_from(start))
        if self._level() == _COMPARISON:
            self.fail(
                "comparisons do not chain",
                code=CHAINED_COMPARISON,
                remedy="Join two comparisons with `and`, or put one of them in parentheses.",
            )
        return found

    def _prefix(self, lowest: int) -> ast.Expression:
        token = self.current
        if token.kind == NAME and token.text == "not" and lowest <= _NOT and not self._named_not():
            self.advance()
            self.enter()
            operand = self._climb(_NOT)
            self.leave()
            return ast.Not(operand, self.span_from(token))
        if token.kind == "-":
            return self._minus()
        return self._operand()

    def _named_not(self) -> bool:
        """Whether ``not`` stands before a comparison: in a mutation, a property of this name."""
        return self.bare_names_are_properties and self.peek().kind in COMPARISONS

    def _minus(self) -> ast.Expression:
        start = self.advance()
        if self.current.kind in NUMBERS:
            return self._number(start, sign=-1)
        self.enter()
        operand = self._minus() if self.at("-") else self._operand()
        self.leave()
        return ast.Minus(operand, self.span_from(start))

    # Operands

    def _operand(self) -> ast.Expression:
        token = self.current
        if token.kind == VARIABLE:
            return self._variable_or_property()
        if token.kind == "(":
            self.advance()
            self.enter()
            found = self.expression()
            self.leave()
            self.expect(")")
            return found
        if token.kind == "@":
            self.advance()
            return ast.SystemField(None, self._system_name(), self.span_from(token))
        if token.kind == NAME:
            return self._word()
        return self._literal()

    def _word(self) -> ast.Expression:
        """An operand that starts with a name."""
        token = self.current
        if token.text in BOOLEANS:
            self.advance()
            return ast.LiteralValue("boolean", token.text == "true", token.span)
        following = self.peek().kind
        if token.text == "null":
            self.advance()
            return ast.NullLiteral(token.span)
        if token.text in RESERVED and not self._is_property_word(token):
            self._refuse_reserved(token)
        if following == "(":
            return self._date() if token.text in LITERAL_WORDS else self._call()
        if token.text == "case" and following == "{":
            return self._case()
        self.advance()
        if self.bare_names_are_properties:
            return ast.FieldReference(token.text, token.span)
        return ast.AliasReference(token.text, token.span)

    def _is_property_word(self, token: Token) -> bool:
        """Whether an infix word stands where an operand must: in a mutation, a property."""
        return self.bare_names_are_properties and (token.text in _LEVELS or self._named_not())

    def _refuse_reserved(self, token: Token) -> NoReturn:
        self.fail(
            f"`{token.text}` is an operator and cannot stand here",
            code=RESERVED_WORD,
            span=token.span,
            remedy="Put a condition that is an operand in parentheses, and the name of an edge in "
            f'quotes: `$a "{token.text}" $b`.',
        )

    def _variable_or_property(self) -> ast.Expression:
        token = self.advance()
        if not self.at("."):
            return ast.Variable(token.text[1:], token.span)
        self.advance()
        variable = ast.Name(token.text[1:], token.span)
        if self.accept("@"):
            return ast.SystemField(variable, self._system_name(), self.span_from(token))
        return ast.PropertyAccess(variable, self.property_name(), self.span_from(token))

    def _system_name(self) -> ast.Name:
        return self.name(NAME, "`id`, `src`, `dst` or `type`")

    def _case(self) -> ast.Case:
        start = self.advance()
        self.expect("{")
        self.enter()
        branches: list[ast.When] = []
        self.expect_word("when")
        while True:
            condition = self.expression()
            self.expect_word("then")
            branches.append(ast.When(condition, self.expression()))
            if not self.accept_word("when"):
                break
        otherwise = self.expression() if self.accept_word("else") else None
        self.leave()
        self.expect("}")
        return ast.Case(tuple(branches), otherwise, self.span_from(start))

    # Calls

    def _call(self) -> ast.Call:
        token = self.current
        function = FUNCTIONS.get(token.text)
        if function is None:
            self.fail_at(
                token.span,
                f"there is no function `{token.text}`",
                code=UNKNOWN_FUNCTION,
                known=(*FUNCTIONS, *LITERAL_WORDS),
            )
        self.advance()
        self.advance()
        self.enter()
        arguments = self._arguments(function)
        self.leave()
        name = ast.Name(token.text, token.span)
        return ast.Call(name, arguments, self.span_from(token))

    def _arguments(self, function: Function) -> tuple[ast.Expression, ...]:
        found: list[ast.Expression] = []
        if not self.at(")"):
            found.append(self._argument(function, 0))
            while self.accept(","):
                found.append(self._argument(function, len(found)))
        if not function.takes(len(found)):
            self.fail(
                f"`{function.name}` takes {_how_many(function)}, not {len(found)}",
                code=ARGUMENT_COUNT,
                remedy=f"Write `{function.signature}`.",
            )
        self.expect(")")
        return tuple(found)

    def _argument(self, function: Function, position: int) -> ast.Expression:
        if self.at(NAME) and self.peek().kind == ":":
            self._option(function, position)
        found = self.expression()
        if function.name == "nearest" and position == 0 and not _is_property(found):
            self.fail(
                "the first argument of `nearest` is a vector property",
                span=found.span,
                remedy="Write it as `$variable.property`.",
            )
        return found

    def _option(self, function: Function, position: int) -> None:
        """The name before an optional argument, which says the same as its place."""
        name = self.advance()
        self.advance()
        options = function.arguments[function.required :]
        if position < function.required or name.text not in options[: 1 + position]:
            self.fail_at(
                name.span,
                f"`{function.name}` has no option `{name.text}` here",
                code=ARGUMENT_COUNT,
                known=options,
                remedy=f"Write `{function.signature}`.",
            )

    # Literals

    def _literal(self) -> ast.Expression:
        token = self.current
        if token.kind == STRING:
            self.advance()
            return ast.LiteralValue("string", string_value(token), token.span)
        if token.kind in NUMBERS:
            return self._number(token)
        if token.kind == "[":
            return self._list()
        self.try_for("an expression")
        return self.fail()

    def _number(self, start: Token, sign: int = 1) -> ast.LiteralValue:
        token = self.advance()
        following = self.current
        if following.kind in (NAME, TYPE_NAME) and following.start == token.end:
            self.fail(
                f"`{token.text}{following.text}` is not a number",
                code=NO_SUCH_LITERAL,
                span=Span(token.start, following.end),
                remedy="Write digits, with a point or an exponent such as `2.5e3`.",
            )
        span = self.span_from(start)
        if token.kind == INTEGER:
            return ast.LiteralValue("integer", sign * int(token.text), span)
        return ast.LiteralValue("decimal", sign * float(token.text), span)

    def whole_number(self, what: str) -> int:
        if self.at("-"):
            self.fail(
                f"{what} is not negative",
                code=NO_SUCH_LITERAL,
                remedy="Write a whole number of at least 0.",
            )
        token = self.expect(INTEGER, what)
        return int(token.text)

    def _date(self) -> ast.LiteralValue:
        word = self.advance()
        self.expect("(")
        text = string_value(self.expect(STRING))
        self.expect(")")
        return ast.LiteralValue(cast(ast.LiteralKind, word.text), text, self.span_from(word))

    def _list(self) -> ast.ListLiteral:
        start = self.advance()
        self.enter()
        items: list[ast.Expression] = []
        if not self.accept("]"):
            items.append(self.expression())
            while self.accept(","):
                items.append(self.expression())
            self.expect("]")
        self.leave()
        return ast.ListLiteral(tuple(items), self.span_from(start))


def _is_property(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.PropertyAccess)


def _how_many(function: Function) -> str:
    low, high = function.required, len(function.arguments)
    if function.variadic:
        return f"at least {low} arguments"
    if low == high:
        return f"{low} argument" + ("" if low == 1 else "s")
    return f"{low} or {high} arguments"
