"""Rules S-29 to S-33 and S-40 to S-52: interfaces, names, canonical shape."""

from __future__ import annotations

from tests.lang.schema.support import MUS, accept, codes, findings


def test_S_29_an_interface_gives_properties_with_their_annotations() -> None:
    node = accept("""
        interface Named {
          title: String @key @description("what it is called")
          tag: String? @unique @index
          vec: Vector(2)? @embed(title)
        }
        node Book implements Named { pages: I32 }
    """).nodes["Book"]
    assert list(node.properties) == ["pages", "tag", "title", "vec"]
    assert node.key_properties == ("title",)
    assert node.unique == (("tag",),)
    assert node.indexes == (("tag",), ("title",))
    assert node.properties["title"].description == "what it is called"
    assert node.properties["vec"].embed is not None
    assert [item.inherited for item in node.properties.values()] == [False, True, True, True]


def test_S_29_annotations_without_meaning_are_not_inherited() -> None:
    node = accept("interface I { x: I32 @owner } node A implements I {}").nodes["A"]
    assert node.properties["x"].annotations == ()


def test_S_30_a_property_of_the_node_itself_wins() -> None:
    node = accept("""
        interface Named { title: String @key @description("i") }
        node Film implements Named { title: String }
    """).nodes["Film"]
    assert node.key_properties == ()
    assert node.indexes == ()
    assert node.properties["title"].description is None
    assert not node.properties["title"].inherited


def test_S_30_the_types_must_be_equal() -> None:
    for mine in ("String?", "[String]", "enum(a)", "I32"):
        text = f"interface I {{ x: String }} node A implements I {{ x: {mine} }}"
        assert codes(text) == ["S30"]
    assert accept("interface I { x: enum(a, b) } node A implements I { x: enum(b, a) }")


def test_S_31_two_interfaces_may_say_the_same() -> None:
    node = accept("""
        interface I { x: enum(a, b) @index @description("d") }
        interface J { x: enum(b, a) @description("d") @index }
        node A implements I, J {}
    """).nodes["A"]
    assert node.indexes == (("x",),)


def test_S_31_two_interfaces_must_not_disagree() -> None:
    for other in ("I32?", "I32 @index", 'I32 @description("x")', "I32 @owner", "I64"):
        text = f"interface I {{ x: I32 }} interface J {{ x: {other} }} node A implements I, J {{}}"
        assert codes(text) == ["S31"]
        settled = text.replace("J {}", "J { x: I32 }")
        assert codes(settled) == ["S30"] if other in ("I32?", "I64") else accept(settled)


def test_S_32_an_unknown_interface_is_refused() -> None:
    found = findings("interface Named {} node A implements Nemed {}")
    assert [(item.code, item.hint) for item in found] == [("S32", "did you mean `Named`?")]


def test_S_32_duplicates_in_the_list_collapse() -> None:
    node = accept("interface I { x: I32 } node A implements I, I {}").nodes["A"]
    assert node.implements == ("I",)


def test_S_33_an_edge_ends_at_node_types() -> None:
    found = findings("interface I {} node A {} edge E: A -> I")
    assert [item.code for item in found] == ["S41"]
    assert "interface" in (found[0].remedy or "")


def test_S_40_names_are_declared_once() -> None:
    assert codes("node A {} node A {}") == ["S40"]
    assert codes("interface A {} interface A {}") == ["S40"]
    assert codes("node A {} edge E: A -> A edge E: A -> A") == ["S40"]
    assert codes("node A { x: I32 x: I64 }") == ["S40"]


def test_S_41_endpoints_must_be_declared() -> None:
    assert codes("node A {} edge E: A -> B") == ["S41"]
    assert codes("node A {} edge E: B -> A") == ["S41"]
    assert codes("edge E: A -> B") == ["S41", "S41"]


def test_S_50_edges_differ_in_more_than_case() -> None:
    assert codes("node A {} edge Likes: A -> A edge LIKES: A -> A") == ["S50"]
    assert set(accept("node Likes {} node LIKES {}").nodes) == {"LIKES", "Likes"}


def test_S_51_kinds_have_namespaces_of_their_own() -> None:
    schema = accept("interface A { x: I32 } node A implements A {} edge A: A -> A")
    assert (set(schema.interfaces), set(schema.nodes), set(schema.edges)) == ({"A"}, {"A"}, {"A"})
    assert schema.type("node:A") is schema.nodes["A"]
    assert schema.type("edge:A") is schema.edges["A"]


def test_S_52_comments_order_and_hints_do_not_change_the_hash() -> None:
    other = """
        // the same museum
        edge Guards: Curator -> Hall @card(0..2)
        node Hall @rename_from("Room") {
          @range(capacity, 1.0..500.00)
          capacity: U32? @rename_from("size")
          code: String @key(code)
        }
        edge Mentors: Curator -> Curator { since: Date? }
        node Curator {
          tags: [String]?
          level: enum(senior, junior)?
          @unique(email)
          email: String?
          age: I32?
          handle: String @key
        }
    """
    assert accept(other).hash == accept(MUS).hash
    assert accept(MUS).hash.startswith("sha256:")


def test_S_52_everything_else_changes_it() -> None:
    changes = (
        ("age: I32?", "age: I64?"),
        ("age: I32?", "age: I32"),
        ("age: I32?", "ages: I32?"),
        ("@unique", "@index"),
        ("1..500", "1..501"),
        ("0..2", "0..3"),
        ("node Hall", 'node Hall @description("x")'),
        ("junior, senior", "junior, senior, lead"),
        ("Mentors:", "Mentor:"),
    )
    hashes = {accept(MUS).hash} | {accept(MUS.replace(*change)).hash for change in changes}
    assert len(hashes) == len(changes) + 1
