"""Rules V-10 to V-14 and V-21: the plan from one schema to another."""

from __future__ import annotations

import pytest
from tests.lang.schema.support import MUS, accept, codes, plan, step_kinds


def refusals(before: str, after: str) -> list[str | None]:
    """The codes of the refused changes; fails when something else is planned."""
    steps = plan(before, after).steps
    assert {step.kind for step in steps} == {"unsupported_change"}
    return [step.code for step in steps]


def test_V_10_a_plan_is_supported_unless_a_step_is_not() -> None:
    assert plan(MUS, MUS + "node New {}").to_json() == {
        "supported": True,
        "steps": [{"kind": "add_type", "type_kind": "node", "name": "New"}],
    }
    found = plan(MUS, MUS.replace("age: I32?", "age: String?") + "node New {}")
    assert not found.supported
    assert len(found.steps) == 2


def test_V_10_steps_come_in_a_fixed_order() -> None:
    before = """
        interface I { a: I32? }
        node A implements I { b: I32? old: I32? }
        node Z {}
        edge E: A -> A { c: I32? }
        edge Gone: Z -> Z
    """
    after = """
        edge F: A -> A @rename_from("E") @description("d") { d: I32? @rename_from("c") n: I32? }
        node A implements I @description("x") { b: I32? @index new: I32? @description("n") }
        node New {}
        interface I { a: I32? more: String? }
        interface J {}
    """.replace('implements I @description("x")', '@description("x") implements I')
    found = [(step.kind, step.entity) for step in plan(before, after).steps]
    assert found == [
        ("add_property", "interface:I.more"),
        ("add_type", "interface:J"),
        ("update_type_metadata", "node:A"),
        ("add_property", "node:A.more"),
        ("add_property", "node:A.new"),
        ("drop_property", "node:A.old"),
        ("add_constraint", "node:A"),
        ("add_type", "node:New"),
        ("drop_type", "node:Z"),
        ("rename_type", "edge:F"),
        ("update_type_metadata", "edge:F"),
        ("rename_property", "edge:F.d"),
        ("add_property", "edge:F.n"),
        ("drop_type", "edge:Gone"),
    ]


def test_V_10_a_new_required_property_needs_values() -> None:
    assert refusals(MUS, MUS.replace("age: I32?", "age: I32? bio: String")) == ["OG-MF-103"]


TYPE_CHANGES = [
    ("handle: String @key", "handle: enum(a, b) @key"),
    ("age: I32?", "age: [I32]?"),
    ("age: I32?", "age: F64?"),
    ("enum(junior, senior)?", "String?"),
    ("tags: [String]?", "tags: [I32]?"),
]


@pytest.mark.parametrize("change", TYPE_CHANGES)
def test_V_10_a_type_cannot_become_something_else(change: tuple[str, str]) -> None:
    assert refusals(MUS, MUS.replace(*change)) == ["OG-MF-106"]


ALLOWED = {
    "wider": (("age: I32?", "age: I64?"), False),
    "required": (("age: I32?", "age: I32"), True),
    "wider and required": (("age: I32?", "age: I64"), True),
    "fewer members": (("enum(junior, senior)?", "enum(senior)?"), True),
    "more members, required": (("enum(junior, senior)?", "enum(junior, senior, lead)"), True),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED.keys())
def test_V_10_a_type_may_become_wider_or_what_the_data_allows(
    change: tuple[tuple[str, str], bool],
) -> None:
    (step,) = plan(MUS, MUS.replace(*change[0])).steps
    assert (step.kind, step.validated) == ("change_property_type", change[1])


UNSUPPORTED = {
    "new key": ("node A { x: I32 }", "node A { x: I32 @key }"),
    "key removed": ("node A { x: I32 @key }", "node A { x: I32 }"),
    "annotation changed": ("node A { x: I32 @o(1) }", "node A { x: I32 @o(2) }"),
    "type annotation changed": ("node A @o {}", "node A {}"),
    "embed added": (
        "node A { t: String v: Vector(2) }",
        "node A { t: String v: Vector(2) @embed(t) }",
    ),
    "embed model changed": (
        'node A { t: String v: Vector(2) @embed(t, model="a") }',
        'node A { t: String v: Vector(2) @embed(t, model="b") }',
    ),
    "endpoint changed": (
        MUS,
        MUS.replace("Mentors: Curator -> Curator", "Mentors: Curator -> Hall"),
    ),
}


@pytest.mark.parametrize("change", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_V_10_unsupported_without_a_code(change: tuple[str, str]) -> None:
    assert set(refusals(*change)) == {None}


CONSTRAINTS = {
    "new unique": (MUS, MUS.replace("age: I32?", "age: I32? @unique"), ["add_constraint"]),
    "new range": (
        MUS,
        MUS.replace("age: I32?", "age: I32? @range(age, 0..99)"),
        ["add_constraint"],
    ),
    "new check": (
        MUS,
        MUS.replace("age: I32?", 'age: I32? @check(handle, "a")'),
        ["add_constraint"],
    ),
    "unique removed": (MUS, MUS.replace("@unique", ""), ["drop_constraint"]),
    "range removed": (MUS, MUS.replace("@range(capacity, 1..500)", ""), ["drop_constraint"]),
    "index removed": (
        "node A { x: I32 @index }",
        "node A { x: I32 }",
        ["drop_constraint"],
    ),
    "range changed": (
        MUS,
        MUS.replace("1..500", "1..501"),
        ["drop_constraint", "add_constraint"],
    ),
    "cardinality": (MUS, MUS.replace("0..2", "0..3"), ["change_cardinality"]),
}


@pytest.mark.parametrize("change", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_V_10_constraints_come_and_go(change: tuple[str, str, list[str]]) -> None:
    before, after, kinds = change
    steps = plan(before, after).steps
    assert [step.kind for step in steps] == kinds
    for step in steps:
        assert step.validated == (step.kind == "add_constraint")


def test_V_10_inherited_becomes_direct_without_a_step() -> None:
    before = "interface I { x: I32? } node A implements I {}"
    after = "interface I { x: I32? } node A implements I { x: I32? }"
    assert step_kinds(before, after) == []


def test_V_10_a_dropped_key_member_is_refused() -> None:
    before = "node A { a: I32 b: I32 @key(a, b) }"
    assert step_kinds(before, "node A { a: I32 @key }") == [
        "drop_property",
        "unsupported_change",
        "unsupported_change",
    ]


def test_V_10_other_constraints_go_with_a_dropped_member() -> None:
    before = "node A { a: I32 b: I32 @unique(a, b) @index(b) @range(b, 0..1) }"
    assert step_kinds(before, "node A { a: I32 }") == ["drop_property"]


def test_V_10_renames_are_not_changes_of_what_refers_to_them() -> None:
    after = (
        MUS.replace("node Hall", 'node Room @rename_from("Hall")')
        .replace("-> Hall", "-> Room")
        .replace("email: String?", 'mail: String? @rename_from("email")')
        .replace("capacity: U32?", 'seats: U32? @rename_from("capacity")')
        .replace("@range(capacity", "@range(seats")
    )
    assert step_kinds(MUS, after) == ["rename_property", "rename_type", "rename_property"]


def test_V_10_a_renamed_embed_source_is_the_same_source() -> None:
    before = "node A { t: String v: Vector(2) @embed(t) }"
    after = 'node A { text: String @rename_from("t") v: Vector(2) @embed(text) }'
    assert step_kinds(before, after) == ["rename_property"]


def test_V_11_a_node_type_goes_only_with_its_edges() -> None:
    curator = MUS[: MUS.index("node Hall")]
    mentors = "edge Mentors: Curator -> Curator { since: Date? }\n"
    guards = "edge Guards: Curator -> Hall @card(0..2)"
    assert codes(curator + mentors + guards, accept(MUS)) == ["S41"]
    found = [(step.kind, step.entity) for step in plan(MUS, curator + mentors).steps]
    assert found == [("drop_type", "node:Hall"), ("drop_type", "edge:Guards")]


def test_V_12_rename_and_enum_widening() -> None:
    after = MUS.replace(
        "level: enum(junior, senior)?", 'grade: enum(lead, junior, senior)? @rename_from("level")'
    )
    assert [step.to_json() for step in plan(MUS, after).steps] == [
        {
            "kind": "rename_property",
            "type_kind": "node",
            "type_name": "Curator",
            "from": "level",
            "to": "grade",
        },
        {
            "kind": "extend_enum",
            "type_kind": "node",
            "type_name": "Curator",
            "property_name": "grade",
            "added_values": ["lead"],
        },
    ]


def test_V_12_enum_order_is_no_change() -> None:
    assert step_kinds(MUS, MUS.replace("junior, senior", "senior, junior")) == []


def test_V_13_equal_schemas_have_an_empty_plan() -> None:
    assert plan(MUS, "// hello\n" + MUS).to_json() == {"supported": True, "steps": []}


def test_V_14_drops_are_soft_unless_data_loss_is_allowed() -> None:
    after = MUS[: MUS.index("node Hall")].replace("email: String? @unique", "")
    for allowed, mode in ((False, "soft"), (True, "hard")):
        steps = [step.to_json() for step in plan(MUS, after, allow_data_loss=allowed).steps]
        assert steps == [
            {
                "kind": "drop_property",
                "type_kind": "node",
                "type_name": "Curator",
                "property_name": "email",
                "mode": mode,
            },
            {"kind": "drop_type", "type_kind": "node", "name": "Hall", "mode": mode},
            {"kind": "drop_type", "type_kind": "edge", "name": "Guards", "mode": mode},
            {"kind": "drop_type", "type_kind": "edge", "name": "Mentors", "mode": mode},
        ]


def test_V_21_a_new_index_is_a_declaration_only() -> None:
    for after in (
        MUS.replace("age: I32?", "age: I32? @index"),
        MUS.replace("age: I32?", "age: I32? @index(age)"),
    ):
        assert [step.to_json() for step in plan(MUS, after).steps] == [
            {
                "kind": "add_constraint",
                "type_kind": "node",
                "type_name": "Curator",
                "constraint": {"kind": "index", "properties": ["age"]},
            }
        ]


def test_documentation_changes_are_steps_of_their_own() -> None:
    after = MUS.replace("node Hall", 'node Hall @instruction("i") @description("d")')
    after = after.replace("age: I32?", 'age: I32? @description("in years")')
    assert [step.to_json() for step in plan(MUS, after).steps] == [
        {
            "kind": "update_property_metadata",
            "type_kind": "node",
            "type_name": "Curator",
            "property_name": "age",
            "annotations": [{"name": "description", "value": "in years"}],
        },
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "Hall",
            "annotations": [
                {"name": "description", "value": "d"},
                {"name": "instruction", "value": "i"},
            ],
        },
    ]
    assert step_kinds(after, MUS) == ["update_property_metadata", "update_type_metadata"]


def test_every_step_can_be_said_in_words() -> None:
    before = MUS + "node Old {} edge Up: Hall -> Hall"
    after = (
        MUS.replace("age: I32?", 'age: I64? @index bio: String? @description("b")')
        .replace("email: String? @unique", 'mail: String? @unique @rename_from("email")')
        .replace("junior, senior", "junior, senior, lead")
        .replace("tags: [String]?", "must: I32")
        + 'node New {} edge Down: Hall -> Hall @rename_from("Up") @description("x")'
    )
    said = [step.describe() for step in plan(before, after).steps]
    assert said == [
        "change property Curator.age from I32? to I64?",
        "add property Curator.bio: String?",
        "extend property Curator.level by lead",
        "rename email to property Curator.mail",
        "not supported: [OG-MF-103] node:Curator.must: a new required property needs a value for"
        " existing entities",
        "drop property Curator.tags (data kept in older versions)",
        "declare an index on node type Curator: age",
        "add node type New",
        "drop node type Old (data kept in older versions)",
        "rename Up to edge type Down",
        "change the documentation of edge type Down",
    ]
