"""The lexer of both languages.

Owns the spelling of names, numbers, strings, punctuation and comments, and the limit on the size of
a text. It reserves no words: ``node`` and ``match`` are names, and a parser gives them a meaning.
Comments are stored apart from the tokens, for formatters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from omnigraph.lang.syntax.diagnostics import Diagnostics
from omnigraph.lang.syntax.source import Source, Span

TEXT_BYTES_MAX: Final = 1 << 20
"""The largest text: schemas and queries are written by people and are much smaller."""

NUMBER_CHARS_MAX: Final = 300
"""A longer number fits no type, and reading it takes quadratic time."""

NAME: Final = "name"
TYPE_NAME: Final = "type name"
VARIABLE: Final = "variable"
INTEGER: Final = "integer"
DECIMAL: Final = "decimal"
EXPONENT: Final = "number with an exponent"
STRING: Final = "string"
COMMENT: Final = "comment"
ERROR: Final = "error"
END: Final = "end"
"""Kinds of tokens. The kind of a punctuation token is its own text, such as ``{``. An ``ERROR``
token replaces text that was reported as unreadable; parsers report nothing more about it."""

UNEXPECTED_CHARACTER: Final = "P001"
UNTERMINATED_STRING: Final = "P002"
UNTERMINATED_COMMENT: Final = "P003"
UNSUPPORTED_ESCAPE: Final = "P004"
TEXT_TOO_LARGE: Final = "P006"
NOT_UNICODE: Final = "P008"
NUMBER_TOO_LONG: Final = "P009"

_SCAN: Final = re.compile(
    r"""[ \t\r\n]*+(?:
      (?P<name>[a-z_][A-Za-z0-9_]*+)
    | (?P<type>[A-Z][A-Za-z0-9_]*+)
    | (?P<variable>\$[a-z_][A-Za-z0-9_]*+)
    | (?P<comment>//[^\n]*+|/\*(?s:.*?)\*/)
    | (?P<open_comment>/\*)
    | (?P<punctuation>->|\.\.|>=|<=|!=|[{}()\[\]:,?@<>=.+*/%|&-])
    | (?P<exponent>[0-9]++(?:\.[0-9]++)?[eE][+-]?[0-9]++)
    | (?P<decimal>[0-9]++\.[0-9]++)
    | (?P<integer>[0-9]++)
    | (?P<string>"(?:[^"\\]++|\\(?s:.))*+")
    | (?P<open_string>")
    | (?P<end>\Z)
    | (?P<bad>(?:[^ \t\r\nA-Za-z0-9_"{}()\[\]:,?@<>=.+*/%|&$-]|\$(?![a-z_]))++)
    )""",
    re.VERBOSE,
)
_KINDS: Final = {
    "name": NAME,
    "type": TYPE_NAME,
    "variable": VARIABLE,
    "decimal": DECIMAL,
    "exponent": EXPONENT,
    "integer": INTEGER,
    "string": STRING,
}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_HINTS: Final = {
    "'": "strings are written in double quotes",
    "`": "strings are written in double quotes",
    "“": 'use the plain quote character `"`',
    "”": 'use the plain quote character `"`',
    "#": "a comment starts with `//`",
    ";": "no separator is needed here",
    "$": "a variable is `$` and a name that starts with a lower-case letter",
    "!": "the only operator with `!` is `!=`",
    "\ufeff": "save the file without a byte order mark",
    "\u00a0": "this is a no-break space: replace it by a plain one",
}


class Token(NamedTuple):
    """One token: its kind, its exact text, and its position."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Lexed:
    """A text as tokens. ``tokens`` always ends with one ``END``; ``comments`` are in text order."""

    source: Source
    tokens: list[Token]
    comments: list[Token]


def lex(source: Source, diagnostics: Diagnostics) -> Lexed:
    """All tokens of a text. Unreadable text is reported and becomes an ``ERROR`` token."""
    tokens: list[Token] = []
    comments: list[Token] = []
    text = source.text
    if not _acceptable(source, diagnostics):
        return Lexed(source, [Token(ERROR, "", 0, 0), Token(END, "", 0, 0)], comments)
    append = tokens.append
    for match in _SCAN.finditer(text):
        group = match.lastgroup or "end"
        index = match.lastindex or 0
        start, end = match.span(index)
        word = match[index]
        if group == "punctuation":
            append(Token(word, word, start, end))
        elif group in _KINDS:
            kind = _KINDS[group]
            if kind == STRING and "\\" in word:
                _check_escapes(word, start, diagnostics)
            elif end - start > NUMBER_CHARS_MAX and kind in (INTEGER, DECIMAL, EXPONENT):
                _number_too_long(Span(start, end), diagnostics)
                kind = ERROR
            append(Token(kind, word, start, end))
        elif group == "comment":
            comments.append(Token(COMMENT, word, start, end))
        elif group == "end":
            break
        elif group == "bad":
            _unexpected(text[start], Span(start, end), diagnostics)
            append(Token(ERROR, word, start, end))
        else:
            _unterminated(group, start, diagnostics)
            append(Token(ERROR, text[start:], start, len(text)))
            break
    append(Token(END, "", len(text), len(text)))
    return Lexed(source, tokens, comments)


def string_value(token: Token) -> str:
    """The value of a ``STRING`` token. Unsupported escapes, already reported, stay as written."""
    body = token.text[1:-1]
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), body)


def quote(value: str) -> str:
    """The string literal of ``value``. Line breaks are written as escapes."""
    for char, escape in (
        ("\\", r"\\"),
        ('"', r"\""),
        ("\n", r"\n"),
        ("\r", r"\r"),
        ("\t", r"\t"),
    ):
        value = value.replace(char, escape)
    return f'"{value}"'


def _acceptable(source: Source, diagnostics: Diagnostics) -> bool:
    """Whether the text is valid Unicode and within the size limit; reports it if not."""
    text = source.text
    try:
        size = len(text) if text.isascii() else len(text.encode("utf-8"))
    except UnicodeEncodeError as problem:
        diagnostics.error(
            NOT_UNICODE,
            "the text holds half of a surrogate pair, which is not a character",
            Span(problem.start, problem.start + 1),
            remedy="Save the file as UTF-8.",
        )
        return False
    if size > TEXT_BYTES_MAX:
        diagnostics.error(
            TEXT_TOO_LARGE,
            f"the text has {size} bytes, more than the limit of {TEXT_BYTES_MAX}",
            Span(0, 1),
            remedy="Split the text into smaller files.",
        )
        return False
    return True


def _check_escapes(text: str, offset: int, diagnostics: Diagnostics) -> None:
    for match in _ESCAPE.finditer(text):
        if match[1] not in _ESCAPES:
            diagnostics.error(
                UNSUPPORTED_ESCAPE,
                f"unsupported escape `{match[0]}` in a string",
                Span(offset + match.start(), offset + match.end()),
                expected=(r"`\"`", r"`\\`", r"`\n`", r"`\r`", r"`\t`"),
                remedy="Write the character itself, or double the backslash.",
            )


def _unexpected(char: str, span: Span, diagnostics: Diagnostics) -> None:
    """Report a run of characters that start no token; the message names the first one."""
    shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
    diagnostics.error(
        UNEXPECTED_CHARACTER, f"unexpected character {shown}", span, hint=_HINTS.get(char)
    )


def _number_too_long(span: Span, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        NUMBER_TOO_LONG,
        f"this number has more than {NUMBER_CHARS_MAX} characters",
        span,
    )


def _unterminated(group: str, start: int, diagnostics: Diagnostics) -> None:
    if group == "open_string":
        diagnostics.error(
            UNTERMINATED_STRING,
            "this string is never closed",
            Span(start, start + 1),
            expected=('`"`',),
            remedy='Close the string with `"`; write a quote inside it as `\\"`.',
        )
    else:
        diagnostics.error(
            UNTERMINATED_COMMENT,
            "this comment is never closed",
            Span(start, start + 2),
            expected=("`*/`",),
            remedy="Close the comment with `*/`.",
        )
