"""The common base of both languages: source texts, diagnostics, lexer, parser base and printer.

Imports nothing but the standard library and the error tree.
"""

from omnigraph.lang.syntax.decode import decode_source
from omnigraph.lang.syntax.diagnostics import (
    DIAGNOSTICS_MAX,
    Diagnostic,
    Diagnostics,
    Severity,
    SourceError,
    render_all,
)
from omnigraph.lang.syntax.lexer import TEXT_BYTES_MAX, Lexed, Token, lex, quote, string_value
from omnigraph.lang.syntax.source import Source, Span, TextPosition
from omnigraph.lang.syntax.stream import NESTING_MAX, Recover, TokenStream, describe
from omnigraph.lang.syntax.suggest import closest, did_you_mean

__all__ = [
    "DIAGNOSTICS_MAX",
    "NESTING_MAX",
    "TEXT_BYTES_MAX",
    "Diagnostic",
    "Diagnostics",
    "Lexed",
    "Recover",
    "Severity",
    "Source",
    "SourceError",
    "Span",
    "TextPosition",
    "Token",
    "TokenStream",
    "closest",
    "decode_source",
    "describe",
    "did_you_mean",
    "lex",
    "quote",
    "render_all",
    "string_value",
]
