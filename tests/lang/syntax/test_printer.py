"""Tokens back to text, with comments."""

from __future__ import annotations

import pytest

from omnigraph.lang.syntax import Diagnostics, Source, TokenStream
from omnigraph.lang.syntax.printer import LINE_WIDTH_MAX, Printer


def printer_of(text: str) -> Printer:
    source = Source("x", text)
    stream = TokenStream(source, Diagnostics(source))
    return Printer(source, stream.tokens, stream.comments, lambda left, right: True)


def test_tokens_of_a_line_are_joined() -> None:
    printer = printer_of("a\n\n  b c")
    printer.line(0, 2, 0)
    printer.line(2, 3, 2)
    assert printer.finish() == "a b\n    c\n"


def test_an_empty_line_is_kept_added_and_never_put_after_an_opening() -> None:
    printer = printer_of("a\n\n\nb {\n\nc\n\n}\nd")
    for index, separate in ((0, False), (1, False)):
        printer.line(index, index + 1 + index, 0, separate=separate)
    printer.line(3, 4, 1)
    printer.line(4, 5, 0)
    printer.line(5, 6, 0, separate=True)
    assert printer.finish() == "a\n\nb {\n  c\n}\n\nd\n"


def test_comments_stay_behind_or_before() -> None:
    printer = printer_of("a // behind a\n// before b\nb /* x */ c\n// end")
    assert printer.has_comment(1)
    assert not printer.has_comment(0)
    printer.line(0, 1, 0)
    printer.line(1, 3, 1)
    assert printer.finish() == "a // behind a\n  // before b\n  b /* x */ c\n// end\n"


def test_a_line_comment_inside_a_line_breaks_it() -> None:
    printer = printer_of("a // c\nb")
    printer.line(0, 2, 0)
    assert printer.finish() == "a // c\n  b\n"


def test_a_line_that_is_too_long_is_broken_where_allowed() -> None:
    words = ["x" * 30] * 4
    printer = printer_of(" ".join(words))
    printer.line(0, 4, 0, breaks=(1, 3))
    assert printer.finish() == f"{words[0]}\n  {words[1]} {words[2]}\n  {words[3]}\n"
    short = printer_of("a b")
    short.line(0, 2, 0, breaks=(1,))
    assert short.finish() == "a b\n"
    assert LINE_WIDTH_MAX == 100


def test_leaving_a_token_out_is_a_defect_of_the_formatter() -> None:
    printer = printer_of("a b")
    with pytest.raises(AssertionError):
        printer.line(1, 2, 0)
    with pytest.raises(AssertionError):
        printer.finish()
