"""Source text and positions in it.

Owns the mapping between offsets, lines and columns, and how one source line is shown with a caret.
Offsets are code points of the decoded text; bytes appear only where a caller asks for them. This
module never interprets the text.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

TAB_WIDTH: Final = 4
SHOWN_CHARS_MAX: Final = 100
"""A longer line is shortened around the caret, so that a minified file does not fill a terminal."""


class Span(NamedTuple):
    """A half-open range of offsets."""

    start: int
    end: int


class TextPosition(NamedTuple):
    """A line and a column, both counted from 1; columns are characters."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """A named text. ``name`` is what error messages show: a path, or a name in angle brackets."""

    name: str
    text: str

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def position(self, offset: int) -> TextPosition:
        line = bisect_right(self._line_starts, offset)
        return TextPosition(line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (counted from 1) without its line break."""
        start = self._line_starts[number - 1]
        if number < len(self._line_starts):
            return self.text[start : self._line_starts[number] - 1].removesuffix("\r")
        return self.text[start:]

    def slice(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def byte_span(self, span: Span) -> Span:
        """The span in UTF-8 bytes, at least one byte wide."""
        if self.text.isascii():
            start, end = span
        else:
            start = len(self.text[: span.start].encode("utf-8", "surrogatepass"))
            width = len(self.text[span.start : span.end].encode("utf-8", "surrogatepass"))
            end = start + width
        return Span(start, max(end, start + 1))

    def excerpt(self, span: Span) -> tuple[str, str]:
        """The line on which ``span`` starts, and a line of carets to print below it."""
        number, column = self.position(span.start)
        line = self.line(number)
        first = min(column - 1, len(line))
        last = min(max(first + span.end - span.start, first + 1), len(line))
        start, end = 0, len(line)
        if end > SHOWN_CHARS_MAX:
            start = max(0, first - SHOWN_CHARS_MAX // 2)
            end = min(end, start + SHOWN_CHARS_MAX)
        lead, tail = "…" if start else "", "…" if end < len(line) else ""
        cells = _cells(line[start:end])
        before = len(lead) + sum(width for _, width in cells[: first - start])
        marked = sum(width for _, width in cells[first - start : last - start])
        shown = lead + "".join(text for text, _ in cells) + tail
        return shown, " " * before + "^" * max(1, marked)


def _cells(line: str) -> list[tuple[str, int]]:
    """Each character in a printable form, and how many terminal columns it takes."""
    if line.isascii() and line.isprintable():
        return [(char, 1) for char in line]
    cells: list[tuple[str, int]] = []
    column = 0
    for char in line:
        if char == "\t":
            width = TAB_WIDTH - column % TAB_WIDTH
            cell = " " * width
        else:
            cell = _shown(char)
            width = _width(cell)
        cells.append((cell, width))
        column += width
    return cells


def _shown(char: str) -> str:
    """A character in a printable form: control characters are replaced by visible ones."""
    if char < " " or "\x7f" <= char < "\xa0" or 0xD800 <= ord(char) <= 0xDFFF:
        return "�"
    if unicodedata.category(char) in ("Cf", "Zl", "Zp"):
        return "�"
    return char


def _width(char: str) -> int:
    if char < "\x7f":
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
