"""The parser and type checker of the expressions that compute a new property.

An expression has numbers, strings, properties of the same entity, ``+ - * /``, parentheses and
``coalesce(...)``; ``+`` also concatenates strings. Evaluating an accepted expression cannot fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NoReturn

from omnigraph.errors import InvalidInput
from omnigraph.lang.schema.change.computed import ComputedExpression, Tree
from omnigraph.lang.syntax.suggest import did_you_mean
from omnigraph.model.types import PropertyType

DEPTH_MAX: Final = 50
TOKENS_MAX: Final = 300
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<text>\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<mark>[-+*/(),]))"
)
_TEXT, _INTEGER, _NUMBER = "a text", "a whole number", "a number"


def parse_computed(
    text: str, wanted: PropertyType, properties: Mapping[str, tuple[str, PropertyType]]
) -> ComputedExpression:
    """Accept an expression for a property; ``properties`` gives identities and types by name."""
    if not wanted.is_single or wanted.enum is not None:
        raise InvalidInput(
            f"a property of type {wanted} cannot be computed",
            remedy="Give it one value with --backfill, or write the values after the change.",
        )
    tree, kind = _ComputedExpressionParser(text, properties).run()
    target = _kind(wanted)
    if kind != target and (kind, target) != (_INTEGER, _NUMBER):
        raise InvalidInput(f"{text!r} is {kind}, but the property holds {target}")
    return ComputedExpression(tree)


class _ComputedExpressionParser:
    """A recursive descent parser; every method returns a tree and its type."""

    def __init__(self, text: str, properties: Mapping[str, tuple[str, PropertyType]]) -> None:
        self.text = text
        self.properties = properties
        self.at = 0
        self.depth = 0
        self.tokens = 0
        self.group, self.token = "", ""
        self.advance()

    def run(self) -> tuple[Tree, str]:
        found = self.sum()
        if self.group:
            self.fail(f"{self.token!r} is not expected")
        return found

    def fail(self, problem: str) -> NoReturn:
        raise InvalidInput(
            f"the expression {self.text!r} cannot be used: {problem}",
            remedy='Use properties, numbers, "texts", + - * /, parentheses and coalesce(a, b).',
        )

    def advance(self) -> str:
        """Move to the next token; returns the current one."""
        before = self.token
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at :].strip()
            if rest:
                self.fail(f"{rest[:10]!r} is not understood")
            self.group, self.token = "", ""
        else:
            self.at = found.end()
            self.tokens += 1
            if self.tokens > TOKENS_MAX:
                self.fail(f"it has more than {TOKENS_MAX} parts")
            self.group = found.lastgroup or ""
            self.token = found[self.group]
        return before

    def accept(self, *marks: str) -> str | None:
        return self.advance() if self.group == "mark" and self.token in marks else None

    def expect(self, mark: str) -> None:
        if self.accept(mark) is None:
            self.fail(f"{mark!r} is missing")

    def sum(self) -> tuple[Tree, str]:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            self.fail(f"it is nested more than {DEPTH_MAX} times")
        tree, kind = self.product()
        while mark := self.accept("+", "-"):
            right, other = self.product()
            if mark == "+" and kind == other == _TEXT:
                tree = (mark, tree, right)
            else:
                tree, kind = (mark, tree, right), self.number(mark, kind, other)
        self.depth -= 1
        return tree, kind

    def product(self) -> tuple[Tree, str]:
        tree, kind = self.factor()
        while mark := self.accept("*", "/"):
            right, other = self.factor()
            kind = self.number(mark, kind, other)
            tree, kind = (mark, tree, right), _NUMBER if mark == "/" else kind
        return tree, kind

    def factor(self) -> tuple[Tree, str]:
        signs = 0
        while self.accept("-"):
            signs += 1
        tree, kind = self.operand()
        if signs:
            self.number("-", kind, kind)
        return (("-", ("value", 0), tree) if signs % 2 else tree), kind

    def operand(self) -> tuple[Tree, str]:
        if self.accept("("):
            found = self.sum()
            self.expect(")")
            return found
        group, token = self.group, self.advance()
        if group == "text":
            return ("value", self.unquoted(token)), _TEXT
        if group == "number":
            whole = token.isdigit()
            return ("value", int(token) if whole else float(token)), _INTEGER if whole else _NUMBER
        if group != "name":
            self.fail(f"{token!r} is not expected" if token else "it ends too early")
        if token == "coalesce" and self.accept("("):
            return self.coalesce()
        return self.property(token)

    def coalesce(self) -> tuple[Tree, str]:
        given = [self.sum()]
        while self.accept(","):
            given.append(self.sum())
        self.expect(")")
        kinds = {kind for _, kind in given}
        if kinds == {_INTEGER, _NUMBER}:
            kinds = {_NUMBER}
        if len(kinds) > 1:
            self.fail(f"coalesce has {' and '.join(sorted(kinds))}")
        return ("coalesce", *(tree for tree, _ in given)), kinds.pop()

    def property(self, name: str) -> tuple[Tree, str]:
        if name not in self.properties:
            hint = did_you_mean(name, self.properties)
            self.fail(f"there is no property {name}" + (f"; {hint}" if hint else ""))
        identity, kind = self.properties[name]
        if not kind.is_single:
            self.fail(f"{name} is {kind}, which nothing can be computed from")
        return ("property", identity), _kind(kind)

    def number(self, mark: str, left: str, right: str) -> str:
        if not {left, right} <= {_INTEGER, _NUMBER}:
            self.fail(f"{mark!r} stands between {left} and {right}")
        return _INTEGER if left == right == _INTEGER else _NUMBER

    def unquoted(self, token: str) -> str:
        try:
            return str(json.loads(token, strict=False))
        except ValueError:
            self.fail(f"{token} has an unknown escape")


def _kind(kind: PropertyType) -> str:
    families = {"string": _TEXT, "integer": _INTEGER, "float": _NUMBER}
    return families.get(kind.scalar.family, f"a {kind.scalar.name}")
