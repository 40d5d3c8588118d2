"""The base of the parsers: what was expected, recovery, nesting."""

from __future__ import annotations

import re

import pytest

from omnigraph.lang.syntax import NESTING_MAX, Diagnostic, Diagnostics, Recover, Source, TokenStream
from omnigraph.lang.syntax.lexer import END, INTEGER, NAME, TYPE_NAME


def stream_of(text: str) -> TokenStream:
    source = Source("x", text)
    return TokenStream(source, Diagnostics(source))


def failure(stream: TokenStream) -> Diagnostic:
    with pytest.raises(Recover):
        stream.fail()
    return stream.diagnostics.items[-1]


def test_everything_tried_in_vain_is_expected() -> None:
    stream = stream_of("nod")
    assert stream.accept_word("node") is None
    assert stream.accept("{") is None
    assert stream.accept(TYPE_NAME) is None
    found = failure(stream)
    assert found.code == "P005"
    assert found.message == "unexpected `nod`"
    assert found.expected == ("`node`", "`{`", "a type name that starts with an upper-case letter")
    assert found.hint == "did you mean `node`?"


def test_what_was_tried_before_an_accepted_token_is_forgotten() -> None:
    stream = stream_of("a b")
    stream.accept("{")
    stream.expect(NAME)
    stream.accept(INTEGER)
    assert failure(stream).expected == ("a whole number",)


def test_expect_names_what_is_missing() -> None:
    stream = stream_of("")
    with pytest.raises(Recover):
        stream.expect(NAME, "a property name")
    found = stream.diagnostics.items[0]
    assert (found.message, found.expected) == ("unexpected end of the text", ("a property name",))


def test_nothing_is_said_twice_about_an_unreadable_place() -> None:
    stream = stream_of("# x")
    with pytest.raises(Recover):
        stream.expect(NAME)
    assert [item.code for item in stream.diagnostics.items] == ["P001"]


def test_the_end_is_never_passed() -> None:
    stream = stream_of("a")
    for _ in range(5):
        stream.advance()
    assert stream.at_end
    assert stream.peek(3).kind == END


def test_a_pattern_takes_all_tokens_it_covers() -> None:
    stream = stream_of("3d-x, b")
    token = stream.accept_pattern(re.compile(r"[a-z0-9-]+"))
    assert token is not None
    assert (token.text, token.span) == ("3d-x", (0, 4))
    assert stream.at(",")


def test_a_pattern_never_takes_part_of_a_token() -> None:
    stream = stream_of("3.5")
    assert stream.accept_pattern(re.compile("[0-9]+")) is None
    assert stream.current.text == "3.5"


def test_nesting_is_bounded() -> None:
    stream = stream_of("(" * 200)
    for _ in range(NESTING_MAX):
        stream.enter()
        stream.advance()
    assert stream.diagnostics.items == ()
    with pytest.raises(Recover):
        stream.enter()
    assert stream.diagnostics.items[0].code == "P007"
    assert stream.diagnostics.items[0].span == (NESTING_MAX, NESTING_MAX + 1)


def test_leaving_makes_room_again() -> None:
    stream = stream_of("x")
    for _ in range(3 * NESTING_MAX):
        stream.enter()
        stream.leave()
    assert stream.diagnostics.items == ()


def test_skipping_stops_where_told_and_at_the_end() -> None:
    stream = stream_of("a b node c")
    stream.skip_until(lambda: stream.at_word("node"))
    assert stream.current.text == "node"
    stream.skip_until(lambda: False)
    assert stream.at_end


def test_a_span_from_a_token_ends_with_the_last_one_taken() -> None:
    stream = stream_of("a b  c")
    start = stream.advance()
    stream.advance()
    assert stream.span_from(start) == (0, 3)
