"""The base of both parsers: a cursor over tokens that reports errors and recovers from them.

A parser uses ``accept`` and ``expect``; the alternatives that failed at one token become the
"expected" part of the message when parsing fails there. ``fail`` raises ``Recover``, which the
parser catches where it can continue: at an item of a body, or a declaration. ``Recover`` never
leaves a parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.lexer import (
    DECIMAL,
    END,
    ERROR,
    INTEGER,
    NAME,
    STRING,
    TYPE_NAME,
    VARIABLE,
    Token,
    lex,
)
from omnigraph.lang.syntax.source import Source, Span

NESTING_MAX: Final = 64
"""The deepest nesting, below Python's recursion limit: people do not write deeper texts."""

UNEXPECTED_TOKEN: Final = "P005"
NESTED_TOO_DEEP: Final = "P007"

_KIND_NAMES: Final = {
    NAME: "a name that starts with a lower-case letter",
    TYPE_NAME: "a type name that starts with an upper-case letter",
    VARIABLE: "a variable",
    INTEGER: "a whole number",
    DECIMAL: "a decimal number",
    STRING: "a string in double quotes",
    END: "the end of the text",
}


class Recover(Exception):
    """A syntax error was reported; unwind to the nearest recovery point."""


class TokenStream:
    """A cursor over the tokens of one text."""

    __slots__ = (
        "_depth",
        "_tried",
        "_words",
        "comments",
        "current",
        "diagnostics",
        "index",
        "source",
        "tokens",
    )

    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        lexed = lex(source, diagnostics)
        self.source = source
        self.diagnostics = diagnostics
        self.tokens = lexed.tokens
        self.comments = lexed.comments
        self.index = 0
        self.current = lexed.tokens[0]
        self._tried: list[str] = []
        self._words: list[str] = []
        self._depth = 0

    def peek(self, ahead: int = 1) -> Token:
        """A following token, or the ``END`` token if there are not so many."""
        at = self.index + ahead
        return self.tokens[at] if at < len(self.tokens) else self.tokens[-1]

    def at(self, kind: str) -> bool:
        return self.current.kind == kind

    def at_word(self, word: str) -> bool:
        """Whether the current token is this word. Words are contextual, never reserved."""
        return self.current.kind == NAME and self.current.text == word

    @property
    def at_end(self) -> bool:
        return self.current.kind == END

    @property
    def previous(self) -> Token:
        return self.tokens[self.index - 1] if self.index else self.tokens[0]

    def span_from(self, start: Token) -> Span:
        """From the start of ``start`` to the end of the last token taken."""
        return Span(start.start, max(self.previous.end, start.start))

    def advance(self) -> Token:
        """Take the current token, whatever it is. The end of the text is never passed."""
        token = self.current
        if token.kind != END:
            self.index += 1
            self.current = self.tokens[self.index]
        if self._tried:
            self._tried.clear()
        if self._words:
            self._words.clear()
        return token

    def accept(self, kind: str) -> Token | None:
        if self.current.kind == kind:
            return self.advance()
        self._tried.append(kind)
        return None

    def accept_word(self, word: str) -> Token | None:
        if self.current.kind == NAME and self.current.text == word:
            return self.advance()
        self._words.append(word)
        return None

    def expect(self, kind: str, what: str | None = None) -> Token:
        """Take a token of this kind, or fail; ``what`` describes it in the message."""
        if self.current.kind != kind:
            self._tried.append(what or kind)
            self.fail()
        return self.advance()

    def expect_word(self, word: str) -> Token:
        return self.accept_word(word) or self.fail()

    def accept_pattern(self, pattern: re.Pattern[str]) -> Token | None:
        """Match the source text at the current token against a pattern, for example an enum member.

        Takes all tokens that the match covers; None if it covers none, or only a part of one.
        """
        start = self.current.start
        match = pattern.match(self.source.text, start)
        if match is None or match.end() == start:
            return None
        index = self.index
        while self.tokens[index].start < match.end() and self.tokens[index].kind != END:
            index += 1
        if self.tokens[index - 1].end != match.end():
            return None
        kind = self.current.kind
        self.index = index - 1
        self.current = self.tokens[self.index]
        self.advance()
        return Token(kind, match[0], start, match.end())

    def try_for(self, *what: str) -> None:
        """Add alternatives to the "expected" part of a later ``fail`` at this token."""
        self._tried.extend(what)

    def try_for_words(self, *words: str) -> None:
        """``try_for`` with words, which are also used as spelling hints."""
        self._words.extend(words)

    def fail(
        self,
        message: str | None = None,
        *,
        code: str = UNEXPECTED_TOKEN,
        span: Span | None = None,
        hint: str | None = None,
        remedy: str | None = None,
    ) -> NoReturn:
        """Report a syntax error at the current token and unwind to the next recovery point.

        Reports nothing at an ``ERROR`` token, whose problem was reported by the lexer.
        """
        token = self.current
        if token.kind != ERROR:
            if hint is None and token.kind in (NAME, TYPE_NAME):
                hint = self.diagnostics.did_you_mean(token.text, self._words)
            self.diagnostics.error(
                code,
                message or f"unexpected {describe(token)}",
                span or token.span,
                expected=self._expected(),
                hint=hint,
                remedy=remedy,
            )
        raise Recover

    def _expected(self) -> tuple[str, ...]:
        shown = [f"`{word}`" for word in self._words]
        for kind in self._tried:
            shown.append(_KIND_NAMES.get(kind) or (kind if " " in kind else f"`{kind}`"))
        return tuple(dict.fromkeys(shown))

    def enter(self) -> None:
        """Go one level deeper; every recursive rule of a grammar calls this and ``leave``."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            self.fail(
                f"this is nested more than {NESTING_MAX} levels deep",
                code=NESTED_TOO_DEEP,
                remedy="Write it flatter.",
            )

    def leave(self) -> None:
        self._depth -= 1

    def skip_until(self, stop: Callable[[], bool]) -> None:
        """Recover: skip tokens until ``stop()`` holds or the text ends, and reset the nesting."""
        self._depth = 0
        while self.current.kind != END and not stop():
            self.advance()
        self._tried.clear()
        self._words.clear()


def describe(token: Token) -> str:
    """A token as an error message describes it."""
    if token.kind == END:
        return "end of the text"
    if token.kind == STRING:
        return "string"
    if len(token.text) > 40:
        return f"`{token.text[:40]}…`"
    return f"`{token.text}`"
