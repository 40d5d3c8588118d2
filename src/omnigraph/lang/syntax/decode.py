"""Decodes the bytes of a file to a source text."""

from __future__ import annotations

from omnigraph.lang.syntax.diagnostics import Diagnostic, SourceError
from omnigraph.lang.syntax.lexer import NOT_UNICODE
from omnigraph.lang.syntax.source import Source, Span


def decode_source(name: str, data: bytes) -> Source:
    """The text of a UTF-8 file, without a byte order mark. Other encodings are refused."""
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        readable = problem.object[: problem.start].decode("utf-8-sig")
        shown = Source(name, data.decode("utf-8-sig", "replace"))
        place = Span(len(readable), len(readable) + 1)
        finding = Diagnostic(
            NOT_UNICODE,
            f"the file is not UTF-8: byte {problem.start} is 0x{problem.object[problem.start]:02x}",
            place,
            remedy="Save the file as UTF-8.",
        )
        raise SourceError(shown, [finding]) from None
