"""Text to tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.syntax import Diagnostics, Source, lex, quote, string_value
from omnigraph.lang.syntax.lexer import (
    DECIMAL,
    END,
    ERROR,
    INTEGER,
    NAME,
    NUMBER_CHARS_MAX,
    STRING,
    TYPE_NAME,
    VARIABLE,
)


def read(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Kinds and texts of the tokens before the end, and the codes of what was wrong."""
    source = Source("x", text)
    diagnostics = Diagnostics(source)
    tokens = lex(source, diagnostics).tokens
    assert tokens[-1].kind == END
    return [(token.kind, token.text) for token in tokens[:-1]], [d.code for d in diagnostics.items]


def test_every_kind_of_token() -> None:
    found, problems = read('name _x Type $var $_ 12 3.50 "s" -> .. >= <= != { } ( ) [ ] : , ? @')
    assert problems == []
    kinds = [kind for kind, _ in found[:8]]
    assert kinds == [NAME, NAME, TYPE_NAME, VARIABLE, VARIABLE, INTEGER, DECIMAL, STRING]
    assert all(kind == text for kind, text in found[8:])


def test_operators_that_languages_may_need_later_are_tokens() -> None:
    found, problems = read("+ - * / % | & < > = .")
    assert problems == []
    assert [kind for kind, _ in found] == ["+", "-", "*", "/", "%", "|", "&", "<", ">", "=", "."]


def test_the_longest_punctuation_wins() -> None:
    assert [text for _, text in read("a->b<=c..d-1")[0]] == [
        *("a", "->", "b", "<=", "c", "..", "d", "-", "1")
    ]


def test_numbers_need_digits_on_both_sides_of_the_point() -> None:
    assert [text for _, text in read("1.5 1. .5 1..2 1e9")[0]] == [
        *("1.5", "1", ".", ".", "5", "1", "..", "2", "1e9")
    ]


def test_words_are_not_reserved() -> None:
    assert {kind for kind, _ in read("node edge match return true not null in or")[0]} == {NAME}


def test_places_are_exact() -> None:
    source = Source("x", ' é "a"\n$b')
    tokens = lex(source, Diagnostics(source)).tokens
    assert [source.slice(token.span) for token in tokens] == ["é", '"a"', "$b", ""]


def test_comments_are_kept_beside_the_tokens() -> None:
    source = Source("x", "a // one\n/* two */ b /**/ // three")
    lexed = lex(source, Diagnostics(source))
    assert [token.text for token in lexed.tokens] == ["a", "b", ""]
    assert [comment.text for comment in lexed.comments] == [
        "// one",
        "/* two */",
        "/**/",
        "// three",
    ]


def test_comments_inside_strings_are_text() -> None:
    assert read('"// no" "/* no */"') == ([(STRING, '"// no"'), (STRING, '"/* no */"')], [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('a "b', "P002"),
        ('a "b\\', "P002"),
        ('a "b\\"', "P002"),
        ("a /* b", "P003"),
        ("a /*/", "P003"),
        ("a # b", "P001"),
        ("a $ b", "P001"),
        ("a $B", "P001"),
        ("a ! b", "P001"),
        ("a \\ b", "P001"),
        ("a é b", "P001"),
        ('a "\\q"', "P004"),
        ("9" * (NUMBER_CHARS_MAX + 1), "P009"),
    ],
)
def test_what_cannot_be_read_is_reported_once(text: str, code: str) -> None:
    found, problems = read(text)
    assert problems == [code]
    assert code == "P004" or any(kind == ERROR for kind, _ in found)


def test_a_run_of_bad_characters_is_one_finding() -> None:
    found, problems = read("a ###;;; b")
    assert problems == ["P001"]
    assert found == [(NAME, "a"), (ERROR, "###;;;"), (NAME, "b")]


def test_escapes() -> None:
    source = Source("x", r'"\" \\ \n \r \t \\n"')
    token = lex(source, Diagnostics(source)).tokens[0]
    assert string_value(token) == '" \\ \n \r \t \\n'


@given(st.text())
def test_quote_writes_what_string_value_reads(value: str) -> None:
    text = quote(value)
    source = Source("x", text)
    diagnostics = Diagnostics(source)
    tokens = lex(source, diagnostics).tokens
    if any(0xD800 <= ord(char) <= 0xDFFF for char in value):
        assert diagnostics.items[0].code == "P008"
    else:
        assert diagnostics.items == ()
        assert string_value(tokens[0]) == value


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_no_character_of_a_text_is_lost(text: str) -> None:
    """Tokens and comments in order cover everything but white space."""
    source = Source("x", text)
    lexed = lex(source, Diagnostics(source))
    pieces = sorted((*lexed.tokens, *lexed.comments), key=lambda token: (token.start, token.end))
    at = 0
    for piece in pieces:
        assert text[at : piece.start].strip(" \t\r\n") == ""
        assert text[piece.start : piece.end] == piece.text
        at = piece.end
    assert at == len(text) or text[at:].strip(" \t\r\n") == ""
