"""The smallest parts of the grammar: names, literals, calls, operators.

Owns the expression rules that reading and writing share. Number forms and words of other languages
that a person is likely to try are refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn, cast

from omnigraph.lang.query.functions import FUNCTIONS, LITERAL_WORDS, Function
from omnigraph.lang.query.parse import ast
from omnigraph.lang.syntax.lexer import DECIMAL, INTEGER, NAME, STRING, VARIABLE, string_value
from omnigraph.lang.syntax.source import Span
from omnigraph.lang.syntax.stream import TokenStream

UNKNOWN_FUNCTION: Final = "P101"
ARGUMENT_COUNT: Final = "P102"
NO_SUCH_LITERAL: Final = "P103"

COMPARE_NULL: Final = (
    "No comparison with null is true, and there is no test for it yet: return the property and "
    "look for null in the rows."
)
COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
TEXT_OPERATORS: Final = ("contains", "starts_with")
BOOLEANS: Final = ("true", "false")


class ExpressionParser(TokenStream):
    __slots__ = ()

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

    # Expressions

    def expression(self) -> ast.Expression:
        token = self.current
        if token.kind == VARIABLE:
            return self._variable_or_property()
        if token.kind == NAME:
            is_call = self.peek().kind == "("
            if is_call and token.text not in LITERAL_WORDS:
                return self._call()
            if not is_call and token.text not in BOOLEANS:
                self.advance()
                return ast.AliasReference(token.text, token.span)
        return self.literal("an expression")

    def value(self, *, null_remedy: str = COMPARE_NULL) -> ast.Expression:
        """What a property may be set or compared to: a literal, a variable or ``now()``."""
        token = self.current
        if token.kind == VARIABLE:
            self.advance()
            if self.at("."):
                self.fail(
                    "a property of another variable cannot stand here",
                    remedy="Pass the value as a parameter, or compare in a clause of its own.",
                )
            return ast.Variable(token.text[1:], token.span)
        if token.kind == NAME and token.text == "now" and self.peek().kind == "(":
            return self._call()
        return self.literal("a value", null_remedy=null_remedy)

    def _variable_or_property(self) -> ast.Expression:
        token = self.advance()
        if not self.at("."):
            return ast.Variable(token.text[1:], token.span)
        self.advance()
        variable = ast.Name(token.text[1:], token.span)
        return ast.PropertyAccess(variable, self.property_name(), self.span_from(token))

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
            while self.at(","):
                self.advance()
                found.append(self._argument(function, len(found)))
        if not function.required <= len(found) <= len(function.arguments):
            self.fail(
                f"`{function.name}` takes {_how_many(function)}, not {len(found)}",
                code=ARGUMENT_COUNT,
                remedy=f"Write `{function.signature}`.",
            )
        self.expect(")")
        return tuple(found)

    def _argument(self, function: Function, position: int) -> ast.Expression:
        found = self.expression()
        if function.name == "nearest" and position == 0 and not _is_property(found):
            self.fail(
                "the first argument of `nearest` is a vector property",
                span=found.span,
                remedy="Write it as `$variable.property`.",
            )
        return found

    # Literals

    def literal(
        self, what: str, *, null_remedy: str = COMPARE_NULL
    ) -> ast.LiteralValue | ast.ListLiteral:
        token = self.current
        if token.kind == STRING:
            self.advance()
            return ast.LiteralValue("string", string_value(token), token.span)
        if token.kind in (INTEGER, DECIMAL):
            return self._number()
        if token.kind == NAME and token.text in BOOLEANS:
            self.advance()
            return ast.LiteralValue("boolean", token.text == "true", token.span)
        if token.kind == NAME and token.text in LITERAL_WORDS and self.peek().kind == "(":
            return self._date()
        if token.kind == "[":
            return self._list()
        if token.kind == "-":
            self._no_negative_numbers()
        if token.kind == NAME and token.text == "null":
            self.fail(
                "there is no `null` literal",
                code=NO_SUCH_LITERAL,
                remedy=null_remedy,
            )
        self.try_for(what)
        return self.fail()

    def _number(self) -> ast.LiteralValue:
        token = self.advance()
        following = self.current
        if following.kind == NAME and following.start == token.end:
            self.fail(
                f"`{token.text}{following.text}` is not a number",
                code=NO_SUCH_LITERAL,
                span=Span(token.start, following.end),
                remedy="Write all digits, or pass the value as a parameter: no exponents here.",
            )
        if token.kind == DECIMAL:
            return ast.LiteralValue("decimal", float(token.text), token.span)
        return ast.LiteralValue("integer", int(token.text), token.span)

    def whole_number(self, what: str) -> int:
        if self.at("-"):
            self._no_negative_numbers()
        token = self.expect(INTEGER, what)
        return int(token.text)

    def _no_negative_numbers(self) -> NoReturn:
        self.fail(
            "there are no negative number literals",
            code=NO_SUCH_LITERAL,
            remedy="Pass the value as a parameter.",
        )

    def _date(self) -> ast.LiteralValue:
        word = self.advance()
        self.expect("(")
        text = string_value(self.expect(STRING))
        self.expect(")")
        return ast.LiteralValue(cast(ast.LiteralKind, word.text), text, self.span_from(word))

    def _list(self) -> ast.ListLiteral:
        start = self.advance()
        self.enter()
        items: list[ast.LiteralValue | ast.ListLiteral] = []
        if not self.accept("]"):
            items.append(self.literal("a literal"))
            while self.accept(","):
                items.append(self.literal("a literal"))
            self.expect("]")
        self.leave()
        return ast.ListLiteral(tuple(items), self.span_from(start))

    # Shared by reading and writing

    def property_value(self, *, null_remedy: str = COMPARE_NULL) -> ast.PropertyValue:
        start = self.current
        name = self.property_name()
        self.expect(":")
        value = self.value(null_remedy=null_remedy)
        return ast.PropertyValue(name, value, self.span_from(start))

    def comparison_operator(self, *, words: bool) -> ast.ComparisonOperator:
        """An operator; the two that are words only where ``words`` says so."""
        token = self.current
        if token.kind in COMPARISONS or (words and token.text in TEXT_OPERATORS):
            self.advance()
            return cast(ast.ComparisonOperator, token.text)
        self.try_for(*COMPARISONS)
        if words:
            self.try_for_words(*TEXT_OPERATORS)
        elif token.text in TEXT_OPERATORS:
            self.fail(
                f"`{token.text}` cannot stand in a `where`",
                remedy="Find the entities with a read query first.",
            )
        return self.fail()


def _is_property(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.PropertyAccess)


def _how_many(function: Function) -> str:
    low, high = function.required, len(function.arguments)
    if low == high:
        return f"{low} argument" + ("" if low == 1 else "s")
    return f"{low} or {high} arguments"
