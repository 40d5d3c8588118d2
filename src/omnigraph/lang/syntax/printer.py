"""Prints tokens as text and preserves every comment; used by the formatters of both languages.

A formatter decides which tokens belong on one line and how deep it is indented. The printer writes
the lines, keeps each comment next to its token, keeps single empty lines, and breaks lines that are
too long. The layout depends only on tokens, comments and line breaks around comments, so formatting
is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from omnigraph.lang.syntax.lexer import Token
from omnigraph.lang.syntax.source import Source

LINE_WIDTH_MAX: Final = 100
INDENT: Final = "  "


class Printer:
    """Prints all tokens of a text, in order, line by line."""

    def __init__(
        self,
        source: Source,
        tokens: Sequence[Token],
        comments: Sequence[Token],
        space: Callable[[Token, Token], bool],
    ) -> None:
        self._text = source.text
        self._tokens = tokens
        self._space = space
        self._comments = _by_token(tokens, comments)
        self._lines: list[str] = []
        self._next = 0
        self._end: int | None = None
        """The offset in the source at which the last printed token or comment ends."""
        self._opened = False

    def has_comment(self, index: int) -> bool:
        """Whether a comment comes directly before this token."""
        return index in self._comments

    def line(
        self,
        first: int,
        last: int,
        indent: int,
        *,
        breaks: Sequence[int] = (),
        separate: bool = False,
    ) -> None:
        """Print the tokens ``first`` to ``last`` (exclusive) on one line.

        A line that is too long is broken before each token of ``breaks``. ``separate`` puts an
        empty line before it. Lines must be printed in order and cover every token.
        """
        assert first == self._next, "a formatter must print every token exactly once"
        closes = self._tokens[first].text == "}"
        separate = self._lead(first, indent + closes, separate)
        self._blank(self._tokens[first].start, separate, allowed=not closes)
        flat = self._join(first, last, indent, frozenset())
        if "\n" in flat or len(flat) > LINE_WIDTH_MAX:
            flat = self._join(first, last, indent, frozenset(breaks))
        self._lines.append(flat)
        self._next = last
        self._end = self._tokens[last - 1].end
        self._opened = self._tokens[last - 1].text == "{"

    def finish(self) -> str:
        """The whole text, with any remaining comments at the end."""
        last = len(self._tokens) - 1
        assert self._next == last, "a formatter must print every token exactly once"
        self._lead(last, 0, False)
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _lead(self, index: int, indent: int, separate: bool) -> bool:
        """Print the comments before a line; returns whether an empty line is still needed."""
        fresh = self._end is None
        for comment in self._comments.get(index, ()):
            text = comment.text.replace("\r\n", "\n").rstrip()
            if not fresh and "\n" not in self._text[self._end : comment.start]:
                self._lines[-1] += " " + text
            else:
                self._blank(comment.start, separate, allowed=True)
                separate = False
                self._lines.append(INDENT * indent + text)
            self._end = comment.end
            fresh = False
        return separate

    def _blank(self, start: int, wanted: bool, *, allowed: bool) -> None:
        """Print an empty line if requested or in the source, but never after an opening brace."""
        opened, self._opened = self._opened, False
        if not allowed or opened or self._end is None:
            return
        if wanted or self._text.count("\n", self._end, start) > 1:
            self._lines.append("")

    def _join(self, first: int, last: int, indent: int, breaks: frozenset[int]) -> str:
        """Tokens and the comments between them; a line comment ends its line."""
        out = [INDENT * indent, self._tokens[first].text]
        fresh = False
        deeper = "\n" + INDENT * (indent + 1)
        for index in range(first + 1, last):
            token = self._tokens[index]
            inner = self._comments.get(index, ())
            for comment in inner:
                out.append(("" if fresh else " ") + comment.text.replace("\r\n", "\n").rstrip())
                fresh = comment.text.startswith("//")
                if fresh:
                    out.append(deeper)
            if not fresh and index in breaks:
                out.append(deeper)
            elif not fresh and (inner or self._space(self._tokens[index - 1], token)):
                out.append(" ")
            out.append(token.text)
            fresh = False
        return "".join(out)


def _by_token(tokens: Sequence[Token], comments: Sequence[Token]) -> dict[int, list[Token]]:
    """Comments by the index of the token that follows them."""
    found: dict[int, list[Token]] = {}
    index = 0
    for comment in comments:
        while tokens[index].start < comment.start:
            index += 1
        found.setdefault(index, []).append(comment)
    return found
