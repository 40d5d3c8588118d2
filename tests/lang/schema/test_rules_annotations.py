"""Rules S-18 to S-28: annotations and constraints."""

from __future__ import annotations

import pytest
from tests.lang.schema.support import accept, codes, findings

from omnigraph.lang.schema import EdgeCardinality, unique_tuple

BAD_EMBEDS = {
    "not a vector": "t: String v: I32 @embed(t)",
    "a list": "t: String v: [F32] @embed(t)",
    "a blob": "t: String v: Blob @embed(t)",
    "no source": "t: String v: Vector(2) @embed",
    "blank source": 't: String v: Vector(2) @embed(" ")',
    "number as source": "t: String v: Vector(2) @embed(3)",
    "unknown source": "t: String v: Vector(2) @embed(zz)",
    "source is a number": "t: I32 v: Vector(2) @embed(t)",
    "source is a list": "t: [String] v: Vector(2) @embed(t)",
    "source is an enum": "t: enum(a) v: Vector(2) @embed(t)",
    "other keyword": 't: String v: Vector(2) @embed(t, modle="m")',
    "model twice": 't: String v: Vector(2) @embed(t, model="m", model="n")',
    "blank model": 't: String v: Vector(2) @embed(t, model="")',
    "twice": "t: String v: Vector(2) @embed(t) @embed(t)",
}


@pytest.mark.parametrize("body", BAD_EMBEDS.values(), ids=BAD_EMBEDS.keys())
def test_S_18_embed_is_refused(body: str) -> None:
    assert codes(f"node A {{ {body} }}") == ["S18"]


def test_S_18_embed_does_not_stand_on_a_type() -> None:
    assert codes("node A @embed(t) { t: String }") == ["S18"]


def test_S_18_embed_records_source_and_model() -> None:
    quoted = accept('node A { t: String? v: Vector(2) @embed("t", model="m") }')
    bare = accept('node A { t: String? v: Vector(2) @embed(t, model="m") }')
    embed = quoted.nodes["A"].properties["v"].embed
    assert embed is not None
    assert (embed.source, embed.model) == ("t", "m")
    assert bare.hash == quoted.hash


@pytest.mark.parametrize("word", ["key", "unique", "index"])
def test_S_19_the_annotation_means_the_same_as_the_body_form(word: str) -> None:
    short = accept(f"node A {{ x: I32 @{word} }}")
    long = accept(f"node A {{ x: I32 @{word}(x) }}")
    assert short.hash == long.hash


@pytest.mark.parametrize("word", ["key", "unique", "index"])
def test_S_19_the_annotation_is_given_once_and_on_a_property(word: str) -> None:
    assert codes(f"node A {{ x: I32 @{word} @{word} }}") == ["S19"]
    assert codes(f"node A @{word} {{ x: I32 }}") == ["S19"]


def test_S_20_a_node_has_at_most_one_key() -> None:
    assert codes("node A { x: I32 @key y: I32 @key }") == ["S20"]
    assert codes("node A { x: I32 @key @key(x) }") == ["S20"]
    assert codes("interface I { x: I32 @key } node A implements I { y: I32 @key }") == ["S20"]


@pytest.mark.parametrize("kind", ["String?", "[String]", "Vector(2)", "Blob"])
def test_S_20_key_members_hold_exactly_one_value(kind: str) -> None:
    assert codes(f"node A {{ x: {kind} @key }}") == ["S20"]
    assert codes(f"node A {{ x: {kind} @key(x) }}") == ["S20"]


def test_S_20_key_members_exist() -> None:
    found = findings("node A { xylo: I32 @key(xilo) }")
    assert [(item.code, item.hint) for item in found] == [("S20", "did you mean `xylo`?")]


def test_S_20_a_key_implies_an_index() -> None:
    node = accept("node A { x: I32 y: I32 @key(y, x) }").nodes["A"]
    assert node.indexes == (("x", "y"),)
    assert accept("node A { x: I32 @key @index }").hash == accept("node A { x: I32 @key }").hash


@pytest.mark.parametrize("kind", ["[String]", "Vector(2)", "Blob"])
def test_S_21_unique_members_hold_one_value(kind: str) -> None:
    assert codes(f"node A {{ x: {kind} @unique }}") == ["S21"]
    assert codes(f"node A {{ x: {kind} @unique(x) }}") == ["S21"]


def test_S_21_unique_may_name_endpoints_of_an_edge() -> None:
    edge = accept("node A {} edge E: A -> A { x: I32? @unique(src, dst, x) }").edges["E"]
    assert edge.unique == (("dst", "src", "x"),)
    assert codes("node A { x: I32 @unique(src) }") == ["S21"]
    assert codes("node A {} edge E: A -> A { @unique(sources) }") == ["S21"]


def test_S_22_index_takes_vectors_but_no_blobs() -> None:
    assert accept("node A { v: Vector(2) @index }").nodes["A"].indexes == (("v",),)
    assert codes("node A { x: Blob @index }") == ["S22"]
    assert codes("node A { x: Blob @index(x) }") == ["S22"]
    assert codes("node A { @index(nope) }") == ["S22"]


def test_S_22_a_list_may_be_indexed_in_the_body_form_only() -> None:
    assert codes("node A { x: [I32] @index }") == ["S22"]
    assert accept("node A { x: [I32] @index(x) }").nodes["A"].indexes == (("x",),)


def test_S_22_index_may_name_endpoints_of_an_edge() -> None:
    assert accept("node A {} edge E: A -> A { @index(dst) }").edges["E"].indexes == (("dst",),)


@pytest.mark.parametrize("kind", ["String", "[I64]", "Vector(2)", "Date", "Bool", "enum(a)"])
def test_S_23_a_range_needs_a_number(kind: str) -> None:
    assert codes(f"node A {{ x: {kind} @range(x, 0..1) }}") == ["S23"]


def test_S_23_bounds_are_ordered_and_at_least_one_is_given() -> None:
    assert codes("node A { x: I32 @range(x, 2..1) }") == ["S23"]
    assert codes("node A { x: I32 @range(x, ..) }") == ["P005"]
    assert codes("node A { x: I32 @range }") == ["S23"]
    for kind in ("I32", "U64?", "F32"):
        ranges = accept(f"node A {{ x: {kind} @range(x, 1..1) @range(x, ..5) }}").nodes["A"].ranges
        assert {(item.low, item.high) for item in ranges} == {(1.0, 1.0), (None, 5.0)}


BAD_PATTERNS = ["(", "a)", "[a", "(?=x)", "(?<!x)", "\\\\1", "*a", "a**", "a{2000}", "\\\\q", "a{"]


@pytest.mark.parametrize("pattern", BAD_PATTERNS)
def test_S_24_a_malformed_pattern_is_refused(pattern: str) -> None:
    assert codes(f'node A {{ x: String @check(x, "{pattern}") }}') == ["S24"]


@pytest.mark.parametrize("kind", ["I32", "[String]", "Bool", "Date", "Blob"])
def test_S_24_a_check_needs_one_string(kind: str) -> None:
    assert codes(f'node A {{ x: {kind} @check(x, "a") }}') == ["S24"]
    assert codes("node A { x: String @check }") == ["S24"]


def test_S_24_an_enum_counts_as_a_string() -> None:
    node = accept('node A { x: enum(a, b)? @check(x, "^a\\\\d$") }').nodes["A"]
    assert [(item.property, item.pattern) for item in node.checks] == [("x", "^a\\d$")]


def test_S_25_cardinality_bounds() -> None:
    def card(text: str) -> EdgeCardinality:
        return accept(f"node A {{}} edge E: A -> A {text}").edges["E"].cardinality

    assert card("") == EdgeCardinality(0, None)
    assert card("@card(0..)") == EdgeCardinality(0, None)
    assert card("@card(2..4294967295)") == EdgeCardinality(2, 4294967295)
    assert (
        accept("node A {} edge E: A -> A").hash
        == accept("node A {} edge E: A -> A @card(0..)").hash
    )


@pytest.mark.parametrize("text", ["@card(3..2)", "@card(0..4294967296)", "@card", "@x @card(0..1)"])
def test_S_25_cardinality_is_refused(text: str) -> None:
    assert codes(f"node A {{}} edge E: A -> A {text}") == ["S25"]


def test_S_25_cardinality_stands_on_edges_only() -> None:
    assert codes("node A @card(0..1) {}") == ["S25"]
    assert codes("node A { x: I32 @card(0..1) }") == ["S25"]


@pytest.mark.parametrize(
    "body",
    [
        "x: String @key",
        "x: String @key(x)",
        "x: I32 @range(x, 0..1)",
        'x: String @check(x, "a")',
        "x: String v: Vector(2) @embed(x)",
    ],
)
def test_S_26_edges_have_no_key_range_check_or_embed(body: str) -> None:
    assert codes(f"node A {{}} edge E: A -> A {{ {body} }}") == ["S26"]


def test_S_27_constraint_columns_are_canonicalised() -> None:
    one = accept("node A { a: I32 b: I32 @unique(b, a, b) @unique(a, b) }")
    other = accept("node A { a: I32 b: I32 @unique(a, b) }")
    assert one.nodes["A"].unique == (("a", "b"),)
    assert one.hash == other.hash


def test_S_28_uniqueness_is_over_canonical_spellings() -> None:
    node = accept("node A { a: F32? b: Bool @unique(a, b) }").nodes["A"]
    assert unique_tuple(node, node.unique[0], {"a": 0.1, "b": True}) == ("0.1", "true")
    assert unique_tuple(node, node.unique[0], {"a": -0.0, "b": False}) == ("0", "false")


def test_S_28_a_tuple_with_a_null_never_conflicts() -> None:
    node = accept("node A { a: F32? b: Bool @unique(a, b) }").nodes["A"]
    assert unique_tuple(node, node.unique[0], {"a": None, "b": True}) is None
    edge = accept("node A {} edge E: A -> A { @unique(src, dst) }").edges["E"]
    assert unique_tuple(edge, edge.unique[0], {"src": "s", "dst": "d"}) == ("d", "s")


DOCUMENTATION = {
    "blank": '@description(" ")',
    "missing": "@description",
    "number": "@description(3)",
    "keyword": '@description("x", lang="en")',
    "twice": '@description("x") @description("y")',
    "blank instruction": '@instruction("")',
    "instruction twice": '@instruction("x") @instruction("y")',
}


@pytest.mark.parametrize("text", DOCUMENTATION.values(), ids=DOCUMENTATION.keys())
def test_documentation_takes_one_text(text: str) -> None:
    assert codes(f"node A {text} {{}}") == ["S60"]


def test_an_instruction_does_not_stand_on_a_property() -> None:
    assert codes('node A { x: I32 @instruction("x") }') == ["S60"]


@pytest.mark.parametrize(
    "text", ["@rename_from", '@rename_from("")', '@rename_from("A", x=1)', "@rename_from(1)"]
)
def test_a_rename_hint_takes_one_text(text: str) -> None:
    assert codes(f"node B {text} {{}}") == ["S61"]
    assert codes(f"node B {{ x: I32 {text} }}") == ["S61"]
