"""Places in a text, and how they are shown."""

from __future__ import annotations

import pytest

from omnigraph.lang.syntax import Source, Span, TextPosition


def excerpt(text: str, start: int, end: int) -> tuple[str, str]:
    return Source("x", text).excerpt(Span(start, end))


@pytest.mark.parametrize(
    ("offset", "position"), [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (4, (3, 1)), (6, (3, 3))]
)
def test_positions_count_characters_from_one(offset: int, position: tuple[int, int]) -> None:
    assert Source("x", "ab\n\ncéd").position(offset) == TextPosition(*position)


def test_the_end_of_a_text_has_a_position() -> None:
    assert Source("x", "ab\n").position(3) == TextPosition(2, 1)
    assert Source("x", "").position(0) == TextPosition(1, 1)


def test_lines_come_without_their_breaks() -> None:
    source = Source("x", "ab\r\ncd\n\nlast")
    assert [source.line(number) for number in (1, 2, 3, 4)] == ["ab", "cd", "", "last"]


def test_byte_spans_count_bytes_and_are_never_empty() -> None:
    source = Source("x", "aé日b")
    assert source.byte_span(Span(1, 2)) == (1, 3)
    assert source.byte_span(Span(2, 4)) == (3, 7)
    assert source.byte_span(Span(4, 4)) == (7, 8)


def test_a_caret_stands_under_the_span() -> None:
    assert excerpt("node A { x: Strng }", 12, 17) == (
        "node A { x: Strng }",
        "            ^^^^^",
    )


def test_an_empty_span_still_has_a_caret() -> None:
    assert excerpt("ab", 2, 2) == ("ab", "  ^")
    assert excerpt("", 0, 0) == ("", "^")


def test_a_span_over_several_lines_is_marked_to_the_end_of_the_first() -> None:
    assert excerpt("ab cd\nef", 3, 8) == ("ab cd", "   ^^")


def test_tabs_are_shown_as_spaces() -> None:
    assert excerpt("\tab\tc", 4, 5) == ("    ab  c", "        ^")


def test_wide_characters_take_two_columns() -> None:
    assert excerpt("日本 x", 3, 4) == ("日本 x", "     ^")
    assert excerpt("日本 x", 0, 2) == ("日本 x", "^^^^")


def test_combining_characters_take_none() -> None:
    assert excerpt("e\u0301 x", 3, 4) == ("e\u0301 x", "  ^")


def test_control_characters_never_reach_the_terminal() -> None:
    shown, _ = excerpt("a\x1b[31mb\u202ec\x00", 0, 1)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\x00" not in shown


def test_a_long_line_is_cut_around_the_caret() -> None:
    shown, carets = excerpt("a" * 500 + "X" + "b" * 500, 500, 501)
    assert len(shown) == 102
    assert shown[carets.index("^")] == "X"
    assert (shown[0], shown[-1]) == ("…", "…")
    shown, carets = excerpt("X" + "b" * 500, 0, 501)
    assert carets == "^" * 100
    assert shown.endswith("…")
