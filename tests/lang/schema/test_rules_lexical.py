"""Rules S-1 to S-8: characters, names, strings, numbers, places."""

from __future__ import annotations

import pytest
from tests.lang.schema.support import accept, codes, findings

from omnigraph.lang.schema import parse_schema
from omnigraph.lang.syntax import SourceError


def test_S_01_white_space_and_comments_are_insignificant() -> None:
    plain = accept("node A { x: I32 } edge E: A -> A")
    noisy = accept("node\tA/* c */{\r\nx // y: I64 }\n:I32}edge E:A->A// end")
    assert noisy.hash == plain.hash


def test_S_01_block_comments_do_not_nest() -> None:
    assert codes("/* a /* b */ */ node A {}") == ["P005"]


def test_S_01_other_spaces_are_not_white_space() -> None:
    assert codes("node A { x:\u00a0I32 }") == ["P001"]


@pytest.mark.parametrize("text", ["node a {}", "interface i {}", "edge e: A -> A", "node _A {}"])
def test_S_02_type_names_start_upper_case(text: str) -> None:
    assert "P005" in codes("node A {} " + text)


def test_S_02_property_names_start_lower_case_or_underscore() -> None:
    assert list(accept("node A { _X9: I32 aB_: I32 }").nodes["A"].properties) == ["_X9", "aB_"]
    assert codes("node A { X: I32 }") == ["P005"]


def test_S_02_enum_members_may_start_with_a_digit_or_dash() -> None:
    schema = accept("node A { x: enum(3d, -, a-b, 007, Up, _) }")
    assert schema.nodes["A"].properties["x"].type.enum == ("-", "007", "3d", "Up", "_", "a-b")


@pytest.mark.parametrize("member", ["a.b", "a b", "é", '"a"', "a->b", ""])
def test_S_02_enum_members_hold_nothing_else(member: str) -> None:
    assert codes(f"node A {{ x: enum({member}) }}")


def test_S_02_names_are_ascii() -> None:
    assert codes("node A { größe: I32 }")[0] == "P001"


def test_S_03_names_are_case_sensitive() -> None:
    schema = accept("node Ab {} node AB {} edge E: Ab -> AB { aB: I32 ab: I32 }")
    assert set(schema.nodes) == {"Ab", "AB"}
    assert set(schema.edges["E"].properties) == {"aB", "ab"}
    assert codes("node Ab {} edge E: AB -> Ab") == ["S41"]


def test_S_03_edges_are_found_whatever_their_case() -> None:
    edge = accept("node A {} edge LikesIt: A -> A").edge("likesIT")
    assert edge is not None
    assert edge.name == "LikesIt"
    assert accept("node A {}").edge("likes") is None


def test_S_04_strings_may_span_lines_and_hold_escapes() -> None:
    schema = accept('node A @description("a\nb \\" \\\\ \\n \\r \\t é") {}')
    assert schema.nodes["A"].description == 'a\nb " \\ \n \r \t é'


@pytest.mark.parametrize("escape", ["\\u0041", "\\x41", "\\0", "\\'", "\\a"])
def test_S_04_other_escapes_are_refused(escape: str) -> None:
    assert codes(f'node A @description("{escape}") {{}}') == ["P004"]


def test_S_04_a_string_must_be_closed() -> None:
    assert codes('node A @description("abc) {}') == ["P002"]


def test_S_05_numbers_are_unsigned_decimals() -> None:
    schema = accept("node A { x: I32 @a(1) @b(2.50) }")
    values = {item.name: item.value for item in schema.nodes["A"].properties["x"].annotations}
    assert values == {"a": 1, "b": 2.5}
    assert codes("node A { x: I32 @a(-1) }") == ["P005"]
    assert codes("node A { x: I32 @a(.5) }") == ["P005"]
    assert codes("node A { x: I32 @a(1.) }") == ["P005"]


def test_S_05_only_range_bounds_may_be_negative() -> None:
    ranges = accept("node A { x: I32 @range(x, -5..-0.5) }").nodes["A"].ranges
    assert [(item.low, item.high) for item in ranges] == [(-5.0, -0.5)]
    assert codes("node A { x: Vector(-1) }") == ["P005"]
    assert codes("node A {} edge E: A -> A @card(-1..2)") == ["P005"]


def test_S_06_with_a_parenthesis_it_is_a_constraint_of_the_body() -> None:
    schema = accept("node A { x: I32 @unique (y) y: I32 }")
    assert schema.nodes["A"].unique == (("y",),)


def test_S_06_without_one_it_is_an_annotation_of_the_property() -> None:
    assert accept("node A { x: I32 @unique y: I32 }").nodes["A"].unique == (("x",),)


def test_S_06_a_constraint_does_not_stand_in_a_header() -> None:
    assert codes("node A @key(x) { x: I32 }") == ["S6"]
    assert codes("node A {} edge E: A -> A @unique(src) {}") == ["S6"]


def test_S_07_interfaces_have_properties_only() -> None:
    assert codes("interface I { x: I32 @index(x) }") == ["S7"]
    assert codes('interface I @description("x") { x: I32 }') == ["S7"]


def test_S_08_a_syntax_error_has_a_place() -> None:
    with pytest.raises(SourceError) as caught:
        parse_schema('node A { é: I32 }\nnode B @description("ü") { x I32 }', "a.pg")
    first, second = (item.to_json(caught.value.source) for item in caught.value.diagnostics)
    assert (first["line"], first["column"], first["span"]) == (1, 10, {"start": 9, "end": 11})
    assert (second["line"], second["column"]) == (2, 30)
    assert second["span"] == {"start": 49, "end": 52}


def test_S_08_a_span_is_at_least_one_byte_wide() -> None:
    with pytest.raises(SourceError) as caught:
        parse_schema("node A {")
    span = caught.value.diagnostics[0].to_json(caught.value.source)["span"]
    assert span == {"start": 8, "end": 9}


def test_S_08_semantic_errors_have_a_place_too() -> None:
    found = findings("node A {\n  k: String? @key\n}")
    assert [(item.code, item.span) for item in found] == [("S20", (22, 26))]
