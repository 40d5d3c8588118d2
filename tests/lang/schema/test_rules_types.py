"""Rules S-8b to S-17: types, columns, reserved names, annotations without meaning."""

from __future__ import annotations

import pytest
from tests.lang.schema.support import accept, codes

from omnigraph.lang.schema import AcceptedSchema
from omnigraph.lang.schema.render import render_schema
from omnigraph.model.types import SCALARS


def test_S_08b_two_renderings_of_large_integers() -> None:
    kind = accept("node A { x: I64 }").nodes["A"].properties["x"].type
    assert kind.produce(2**53) == 2**53
    assert kind.produce(2**53, js_safe=True) == "9007199254740992"
    assert kind.produce(-(2**53) + 1, js_safe=True) == -9007199254740991


def test_S_09_a_question_mark_makes_a_property_nullable() -> None:
    found = accept("node A { a: [String]? b: Vector(2) ? c: enum(x)? d: Blob }").nodes["A"]
    assert [item.type.nullable for item in found.properties.values()] == [True, True, True, False]
    assert codes("node A { a: [String?] }") == ["P005"]


def test_S_10_a_vector_has_at_least_one_dimension() -> None:
    assert codes("node A { v: Vector(0) }") == ["S10"]


def test_S_10_a_vector_fits_32_bits() -> None:
    schema = accept("node A { v: Vector(2147483647) }")
    assert schema.nodes["A"].properties["v"].type.dimensions == 2147483647
    assert codes("node A { v: Vector(2147483648) }") == ["S10"]


def test_S_11_lists_hold_scalars_other_than_blobs() -> None:
    assert codes("node A { x: [Blob] }") == ["S11"]
    for inner in ("enum(a)", "Vector(2)", "[I32]"):
        assert codes(f"node A {{ x: [{inner}] }}") == ["S11"]


@pytest.mark.parametrize("name", [name for name in SCALARS if name != "Blob"])
def test_S_11_every_other_scalar_may_be_listed(name: str) -> None:
    kind = accept(f"node A {{ x: [{name}] }}").nodes["A"].properties["x"].type
    assert (kind.scalar.name, kind.is_list) == (name, True)


def test_S_12_enum_members_are_a_set() -> None:
    one, other = accept("node A { x: enum(b, a) }"), accept("node A { x: enum(a, b) }")
    assert one.hash == other.hash
    assert one.nodes["A"].properties["x"].type.enum == ("a", "b")
    assert codes("node A { x: enum(a, b, a) }") == ["S12"]


def test_S_13_a_node_table_has_an_id_and_properties_in_name_order() -> None:
    columns = accept("node A { z: I32 a: String? }").nodes["A"].columns()
    assert [(item.name, str(item.type)) for item in columns] == [
        ("id", "String"),
        ("a", "String?"),
        ("z", "I32"),
    ]


def test_S_13_an_edge_table_has_endpoints_too() -> None:
    columns = accept("node A {} edge E: A -> A { b: I32 a: I32 }").edges["E"].columns()
    assert [item.name for item in columns] == ["id", "src", "dst", "a", "b"]
    assert [item.property_id is None for item in columns] == [True, True, True, False, False]


STORAGE_NAMES = [
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
]


@pytest.mark.parametrize("name", STORAGE_NAMES)
def test_S_14_storage_names_are_reserved_everywhere(name: str) -> None:
    assert codes(f"node A {{ {name}: I32 }}") == ["S14"]
    assert codes(f"interface I {{ {name}: I32 }}") == ["S14"]
    assert codes(f"node A {{}} edge E: A -> A {{ {name}: I32 }}") == ["S14"]


def test_S_14_look_alikes_are_ordinary_properties() -> None:
    properties = accept("node A { _row_id: I32 _rowdy: I32 _Rowid: I32 }").nodes["A"].properties
    assert set(properties) == {"_row_id", "_rowdy", "_Rowid"}


def test_S_15_id_is_reserved_on_nodes_and_edges() -> None:
    assert codes("node A { id: String }") == ["S15"]
    assert codes("node A {} edge E: A -> A { id: String }") == ["S15"]
    assert codes("interface I { id: String }") == ["S15"]


@pytest.mark.parametrize("name", ["src", "dst", "from", "to"])
def test_S_15_endpoint_names_are_reserved_on_edges_only(name: str) -> None:
    assert codes(f"node A {{}} edge E: A -> A {{ {name}: String }}") == ["S15"]
    assert name in accept(f"node A {{ {name}: String }}").nodes["A"].properties


def test_S_16_names_reserved_elsewhere_are_free_as_properties() -> None:
    names = {"main", "__schema_apply_lock__", "__nanograph_now"}
    text = "node A { " + " ".join(f"{name}: I32" for name in names) + " }"
    assert set(accept(text).nodes["A"].properties) == names


def test_S_17_a_default_is_a_value_of_its_property() -> None:
    plain, noted = accept("node A { s: String }"), accept('node A { s: String @default("x") }')
    kept = noted.nodes["A"].properties["s"]
    assert (kept.default, kept.default_stored, kept.annotations) == ("x", "x", ())
    assert kept.type == plain.nodes["A"].properties["s"].type
    assert noted.hash != plain.hash
    day = accept('node A { d: Date @default("1970-01-02") }').nodes["A"].properties["d"]
    assert (day.default, day.default_stored) == ("1970-01-02", 1)
    assert AcceptedSchema.from_json(noted.to_json()) == noted
    assert accept(render_schema(noted)).hash == noted.hash


@pytest.mark.parametrize(
    "declared",
    [
        "s: String? @default(x)",
        "s: String @default(1)",
        "s: I32 @default(many)",
        "s: I32 @default",
        "s: I32 @default(1, when=2)",
        "s: I32 @default(1) @default(2)",
        "s: enum(a, b) @default(c)",
        "s: [I32] @default(1)",
        "s: Date @default(soon)",
    ],
)
def test_S_17_a_default_that_does_not_fit_is_refused(declared: str) -> None:
    assert codes(f"node A {{ {declared} }}") == ["S62"]


def test_S_17_a_default_stands_on_a_property() -> None:
    assert codes("node A @default(1) { s: I32 }") == ["S62"]
