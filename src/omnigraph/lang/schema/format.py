"""The formatter of schema texts.

Changes white space only: tokens, comments and their order stay. One property or constraint per
line, two spaces of indentation, one empty line between declarations with a body.
"""

from __future__ import annotations

from typing import Final

from omnigraph.lang.schema.parse.parser import CONSTRAINT_WORDS, parse
from omnigraph.lang.syntax import Diagnostics, Source, Token, TokenStream
from omnigraph.lang.syntax.lexer import END
from omnigraph.lang.syntax.printer import LINE_WIDTH_MAX, Printer

ENUM_WIDTH_MAX: Final = LINE_WIDTH_MAX * 3 // 4
"""The longest enum, in characters without spaces, that is not broken over several lines."""

_TIGHT_AFTER: Final = frozenset(("(", "[", "@", "..", "-", "="))
_TIGHT_BEFORE: Final = frozenset((")", "]", ",", ":", "?", "(", "..", "="))


def format_schema(text: str, name: str = "<schema>") -> str:
    """The formatted text; raises ``SourceError`` if it does not parse."""
    source = Source(name, text)
    diagnostics = Diagnostics(source)
    parse(source, diagnostics)
    diagnostics.raise_errors()
    return _SchemaFormatter(TokenStream(source, diagnostics)).run()


def _space(left: Token, right: Token) -> bool:
    """Whether a space is printed between two tokens of a line."""
    if left.kind == ",":
        return True
    if right.kind == "-" or left.kind in _TIGHT_AFTER or right.kind in _TIGHT_BEFORE:
        return False
    if left.kind == "{" and right.kind == "}":
        return False
    # An enum member such as `3d` is several tokens. In a text that parses, tokens without space
    # between them belong together, unless one of them is punctuation.
    return left.end != right.start or left.kind == left.text or right.kind == right.text


class _SchemaFormatter:
    """Divides a text that parses into lines."""

    def __init__(self, stream: TokenStream) -> None:
        self.tokens = stream.tokens
        self.printer = Printer(stream.source, stream.tokens, stream.comments, _space)
        self.at = 0
        self.first = True
        self.bodiless = False
        """Whether the last declaration was an edge without a body."""

    def run(self) -> str:
        while self.tokens[self.at].kind != END:
            self.declaration()
        return self.printer.finish()

    def declaration(self) -> None:
        """A header up to its brace, and the body line by line."""
        start = self.at
        end = self.header_end(start)
        bodiless = self.tokens[end - 1].kind != "{"
        separate = not self.first and not (bodiless and self.bodiless)
        self.first, self.bodiless = False, bodiless
        breaks = [index for index in range(start + 1, end) if self.tokens[index].kind == "@"]
        if not bodiless and self.tokens[end].kind == "}" and not self.printer.has_comment(end):
            end += 1
            bodiless = True
        self.printer.line(start, end, 0, breaks=breaks, separate=separate)
        self.at = end
        if bodiless:
            return
        while self.tokens[self.at].kind != "}":
            self.member()
        self.printer.line(self.at, self.at + 1, 0)
        self.at += 1

    def member(self) -> None:
        """One property or one constraint, on one line if it fits."""
        start = self.at
        end, breaks = self.property_end(start)
        self.printer.line(start, end, 1, breaks=breaks)
        self.at = end

    def property_end(self, start: int) -> tuple[int, list[int]]:
        """The end of a member, and the positions at which its line may be broken."""
        tokens = self.tokens
        if tokens[start].kind == "@":
            return self.annotation_end(start), []
        at = start + 2
        breaks: list[int] = []
        if tokens[at].kind == "[":
            at += 3
        elif tokens[at + 1].kind == "(":
            close = self.closing(at + 1)
            if sum(len(token.text) for token in tokens[at:close]) > ENUM_WIDTH_MAX:
                breaks = [
                    index for index in range(at + 2, close) if tokens[index - 1].kind in ("(", ",")
                ]
            at = close + 1
        else:
            at += 1
        if tokens[at].kind == "?":
            at += 1
        while self.at_annotation(at):
            breaks.append(at)
            at = self.annotation_end(at)
        return at, breaks

    def at_annotation(self, index: int) -> bool:
        """Whether an annotation of a property starts here, and not a constraint of the body."""
        tokens = self.tokens
        if tokens[index].kind != "@":
            return False
        return tokens[index + 1].text not in CONSTRAINT_WORDS or tokens[index + 2].kind != "("

    def annotation_end(self, index: int) -> int:
        index += 2
        return self.closing(index) + 1 if self.tokens[index].kind == "(" else index

    def closing(self, index: int) -> int:
        """The parenthesis that closes; they do not nest in this language."""
        while self.tokens[index].kind != ")":
            index += 1
        return index

    def header_end(self, start: int) -> int:
        """Past the opening brace, or past the last annotation of an edge without a body."""
        tokens = self.tokens
        if tokens[start].text != "edge":
            while tokens[start].kind != "{":
                start += 1
            return start + 1
        index = start + 6
        while tokens[index].kind == "@":
            index = self.annotation_end(index)
        return index + 1 if tokens[index].kind == "{" else index
