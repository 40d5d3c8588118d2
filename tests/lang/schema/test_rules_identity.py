"""Rules S-34 to S-39 and V-1 to V-5: ids of entities, identities of types and properties."""

from __future__ import annotations

import json
import pickle

import pytest
from tests.lang.schema.support import MUS, accept, codes, findings, minter

from omnigraph.errors import CorruptData, FormatUnsupported, InvalidValue, TypeNotFound
from omnigraph.lang.schema import AcceptedSchema, SchemaStep, accept_schema, entity_id, plan_schema

SHELF = "node Shelf { zone: String aisle: I32 @key(zone, aisle) }"


def derived(text: str, **values: object) -> str | None:
    """The id of one entity of the only node type, from JSON values."""
    (node,) = accept(text).nodes.values()
    stored = {name: node.properties[name].type.accept(value) for name, value in values.items()}
    return entity_id(node, stored)


def test_S_34_the_id_of_a_keyed_node_is_a_function_of_its_key() -> None:
    assert derived("node A { k: String @key x: I32? }", k="ana", x=1) == "ana"
    assert derived("node A { k: String @key x: I32? }", k="ana", x=2) == "ana"


def test_S_34_other_nodes_get_no_id_from_their_values() -> None:
    assert derived("node A { k: String }", k="ana") is None


SPELLINGS = [
    ("String", "Ünï \n", "Ünï \n"),
    ("enum(a-b, c)", "a-b", "a-b"),
    ("Bool", True, "true"),
    ("Bool", False, "false"),
    ("I32", -7, "-7"),
    ("U64", 2**64 - 1, "18446744073709551615"),
    ("F64", 1.0, "1"),
    ("F64", 2.5, "2.5"),
    ("F64", 1e21, "1000000000000000000000"),
    ("F64", 1e-7, "0.0000001"),
    ("F64", -0.0, "0"),
    ("F64", 0.1, "0.1"),
    ("F32", 0.1, "0.1"),
    ("F32", 16777217, "16777216"),
    ("Date", "1970-01-02", "1"),
    ("Date", "2024-02-29", "19782"),
    ("DateTime", "1970-01-01T00:00:01.5Z", "1500"),
    ("DateTime", "1969-12-31T23:59:59Z", "-1000"),
]


@pytest.mark.parametrize(("kind", "value", "spelling"), SPELLINGS)
def test_S_35_canonical_spelling(kind: str, value: object, spelling: str) -> None:
    assert derived(f"node A {{ k: {kind} @key }}", k=value) == spelling


def test_S_35_what_is_not_finite_has_no_spelling() -> None:
    (node,) = accept("node A { k: F64 @key }").nodes.values()
    for value in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(InvalidValue):
            entity_id(node, {"k": value})


def test_S_36_a_composite_id_is_a_compact_array_of_strings() -> None:
    assert derived(SHELF, zone="n", aisle=7) == '["7","n"]'
    assert derived(SHELF, zone='a"b\\\n\u00e9\u2028', aisle=0) == '["0","a\\"b\\\\\\né\u2028"]'


def test_S_36_every_member_needs_a_value() -> None:
    (node,) = accept(SHELF).nodes.values()
    with pytest.raises(InvalidValue):
        entity_id(node, {"zone": "n", "aisle": None})


def test_S_37_members_are_ordered_by_identity_which_starts_alphabetical() -> None:
    one = accept("node A { b: I32 a: I32 c: I32 @key(c, b, a) }").nodes["A"]
    assert one.key_properties == ("a", "b", "c")


def test_S_38_the_spelling_comes_from_the_stored_value() -> None:
    assert derived("node A { k: F64 @key }", k=7) == derived("node A { k: F64 @key }", k=7.0)
    nearby = 0.100000001
    assert derived("node A { k: F32 @key }", k=nearby) == "0.1"
    assert derived("node A { k: F64 @key }", k=nearby) == "0.100000001"


def test_S_39_edges_have_no_keys() -> None:
    assert accept("node A {} edge E: A -> A { x: I32 }").edges["E"].key_properties == ()


def test_V_01_everything_has_an_identity_of_its_own() -> None:
    schema = accept("interface I { x: I32 } " + MUS)
    found = [item.type_id for item in (*schema.interfaces.values(), *schema.types())]
    found += [item.incarnation for item in schema.types()]
    for item in (*schema.interfaces.values(), *schema.types()):
        found += [declared.property_id for declared in item.properties.values()]
    assert all(found)
    assert len(set(found)) == len(found)


def test_V_02_the_same_name_continues() -> None:
    before = accept(MUS)
    after = accept(MUS.replace("age: I32?", "age: I32? bio: String?"), before)
    old, new = before.nodes["Curator"], after.nodes["Curator"]
    assert (new.type_id, new.incarnation, new.origin) == (old.type_id, old.incarnation, old.origin)
    assert new.properties["age"].property_id == old.properties["age"].property_id
    known = {item.property_id for item in old.properties.values()}
    assert new.properties["bio"].property_id not in known


def test_V_02_a_hint_continues_another_name() -> None:
    before = accept(MUS)
    text = MUS.replace("node Hall", 'node Room @rename_from("Hall")').replace("> Hall", "> Room")
    after = accept(
        text.replace("capacity: U32?", 'seats: U32? @rename_from("capacity")').replace(
            "@range(capacity", "@range(seats"
        ),
        before,
    )
    old, new = before.nodes["Hall"], after.nodes["Room"]
    assert (new.type_id, new.incarnation) == (old.type_id, old.incarnation)
    assert new.properties["seats"].property_id == old.properties["capacity"].property_id


def test_V_02_an_inherited_hint_applies_to_the_nodes_that_had_the_property() -> None:
    before = accept("interface I { a: I32? } node A implements I {} node B { b: I32? }")
    text = 'interface I { c: I32? @rename_from("a") } node A implements I {} node B { b: I32? }'
    after = accept(text, before)
    for kind in ("interfaces", "nodes"):
        name = "I" if kind == "interfaces" else "A"
        old = getattr(before, kind)[name].properties["a"]
        assert getattr(after, kind)[name].properties["c"].property_id == old.property_id


def test_V_03_hints_without_effect_are_pointed_out() -> None:
    fresh = accept('node A @rename_from("B") { x: I32 @rename_from("y") }')
    assert [(item.code, item.severity) for item in fresh.warnings] == [("V3", "info")] * 2
    again = accept(fresh.source, fresh)
    assert [(item.code, item.severity) for item in again.warnings] == [("V3", "info")] * 2
    assert again == fresh


WRONG_HINTS = {
    "no such type": MUS + 'node B @rename_from("Nobody") {}',
    "another kind": MUS + 'node B @rename_from("Guards") {}',
    "still there": MUS + 'node B @rename_from("Hall") {}',
    "no such property": MUS.replace("age: I32?", 'years: I32? @rename_from("ages")'),
    "property still there": MUS.replace("age: I32?", 'age: I32? y: I32? @rename_from("age")'),
    "new type": MUS + 'node B { x: I32? @rename_from("age") }',
    "of another type": MUS.replace("capacity:", 'x: I32? @rename_from("age") capacity:', 1),
}


@pytest.mark.parametrize("text", WRONG_HINTS.values(), ids=WRONG_HINTS.keys())
def test_V_03_wrong_hints_are_refused(text: str) -> None:
    assert codes(text, accept(MUS)) == ["V3"]


def test_V_03_two_declarations_cannot_claim_one_source() -> None:
    before = accept("node A { x: I32? }")
    assert codes('node B @rename_from("A") {} node C @rename_from("A") {}', before) == ["V3"]
    two = 'node A { y: I32? @rename_from("x") z: I32? @rename_from("x") }'
    assert codes(two, before) == ["V3"]


def test_V_03_a_wrong_hint_says_what_was_near() -> None:
    before = accept(MUS)
    found = findings(MUS.replace("age: I32?", 'years: I32? @rename_from("agee")'), before)
    assert found[0].hint == "did you mean `age`?"
    found = findings(WRONG_HINTS["of another type"], before)
    assert "Curator" in (found[0].hint or "")


def test_V_03_nothing_is_minted_for_a_text_with_errors() -> None:
    def refuse() -> str:
        raise AssertionError("minted an identity for a schema that is refused")

    with pytest.raises(Exception, match="V3"):
        accept_schema(WRONG_HINTS["new type"], previous=accept(MUS), mint=refuse)


def test_V_04_dropping_and_adding_again_mints_new_identities() -> None:
    before = accept(MUS)
    without = accept("node Curator { handle: String @key }", before)
    again = accept(MUS, without)
    for kind in ("type_id", "incarnation"):
        old, new = getattr(before.nodes["Hall"], kind), getattr(again.nodes["Hall"], kind)
        assert old != new
    old_age = before.nodes["Curator"].properties["age"].property_id
    assert again.nodes["Curator"].properties["age"].property_id != old_age
    assert again.hash == before.hash
    assert again.digest != before.digest


def test_V_05_identities_are_minted_in_a_fixed_order() -> None:
    text = "edge E: B -> A node B { y: I32 x: I32 } node A {} interface I { z: I32 }"
    schema = accept_schema(text, mint=minter(""))
    assert schema.interfaces["I"].type_id == "000000"
    assert [item.type_id for item in schema.types()] == ["000001", "000002", "000003"]
    assert schema.interfaces["I"].properties["z"].property_id == "000004"
    properties = schema.nodes["B"].properties
    assert [properties[name].property_id for name in ("x", "y")] == ["000005", "000006"]
    assert [item.incarnation for item in schema.types()] == ["000007", "000008", "000009"]


def test_V_20_a_renamed_key_member_keeps_its_place_in_ids() -> None:
    before = accept(SHELF)
    text = 'node Shelf { zone: String zz_aisle: I32 @rename_from("aisle") @key(zone, zz_aisle) }'
    after = accept(text, before)
    assert [step.kind for step in plan_schema(before, after).steps] == ["rename_property"]
    node = after.nodes["Shelf"]
    assert node.key_properties == ("zz_aisle", "zone")
    assert entity_id(node, {"zone": "n", "zz_aisle": 7}) == '["7","n"]'
    restored = AcceptedSchema.from_json(json.loads(json.dumps(after.to_json())))
    assert restored.nodes["Shelf"].key_properties == ("zz_aisle", "zone")


def test_an_accepted_schema_survives_json_and_pickle() -> None:
    schema = accept(MUS + 'interface I { x: I32 @key @owner("me", n=1.5) }')
    assert AcceptedSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_damaged_schema_is_refused() -> None:
    body = accept(MUS).to_json()
    body["nodes"][0]["name"] = "Curators"
    with pytest.raises(CorruptData):
        AcceptedSchema.from_json(body)
    for damage in ({"nodes": [{}]}, {"edges": None}, {"hash": None}, {"nodes": [{"name": 3}]}):
        with pytest.raises(CorruptData):
            AcceptedSchema.from_json({**accept(MUS).to_json(), **damage})
    with pytest.raises(FormatUnsupported):
        AcceptedSchema.from_json({**body, "format": 99})


def test_a_missing_type_is_named_with_what_was_near() -> None:
    with pytest.raises(TypeNotFound, match="did you mean `node:Curator`"):
        accept(MUS).type("node:Curatr")
    with pytest.raises(TypeNotFound):
        accept(MUS).type("Curator")


def test_a_step_is_comparable_data() -> None:
    one = SchemaStep(kind="add_type", type_kind="node", type_name="A")
    assert one == SchemaStep(kind="add_type", type_kind="node", type_name="A")
    assert one.to_json() == {"kind": "add_type", "type_kind": "node", "name": "A"}
