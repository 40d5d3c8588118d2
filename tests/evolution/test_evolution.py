"""Applying schemas: rules V-4, V-13 to V-21, and the cases of section G that need data."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lang.schema.support import MUS
from tests.support.inline_tasks import bulk_graph
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    ChangesRefused,
    Conflict,
    ConstraintViolation,
    HistoryReclaimed,
    NotFound,
    SchemaChanged,
    SchemaChangeRefused,
    TypeNotFound,
)
from omnigraph.lang.syntax import SourceError
from omnigraph.storage import failpoints

DATA = [
    {"type": "Curator", "data": {"handle": "ada", "age": 36, "email": "a@m", "level": "senior"}},
    {"type": "Curator", "data": {"handle": "bob", "level": "junior", "tags": ["x", "y"]}},
    {"type": "Curator", "data": {"handle": "cyd", "age": 50}},
    {"type": "Hall", "data": {"code": "h1", "capacity": 40}},
    {"type": "Hall", "data": {"code": "h2"}},
    {"edge": "Mentors", "from": "ada", "to": "bob"},
    {"edge": "Guards", "from": "ada", "to": "h1"},
    {"edge": "Guards", "from": "ada", "to": "h2"},
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "museum", MUS)
    graph.load(DATA, mode="append")
    return graph


@contextmanager
def meanwhile(failpoint: str, act: Callable[[], object]) -> Iterator[None]:
    """Let something happen when a failpoint is passed for the first time."""
    acted: list[str] = []

    def passed(name: str) -> None:
        if name == failpoint and not acted:
            acted.append(name)
            act()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.transaction.transaction.hit", passed)
        yield
    assert acted


def entities(graph: Graph, type_name: str, **where: Any) -> dict[str, dict[str, Any]]:
    lines = b"".join(graph.export(types=[type_name], **where)).splitlines()
    found = [json.loads(line)["data"] for line in lines]
    return {row.pop("id"): row for row in found}


def edit(*changes: tuple[str, str], text: str = MUS) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


ADD_BIO = edit(("age: I32?", "age: I32?\n  bio: String?"))
WITHOUT_EMAIL = edit(("  email: String? @unique\n", ""))
WITHOUT_HALL = MUS[: MUS.index("node Hall")] + "edge Mentors: Curator -> Curator { since: Date? }\n"


# -- properties ------------------------------------------------------------------------------------


def test_G01_an_added_property_is_null_in_what_exists(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    result = graph.apply_schema(ADD_BIO)
    assert result.applied
    assert [step.kind for step in result.plan.steps] == ["add_property"]
    assert {row["bio"] for row in entities(graph, "Curator").values()} == {None}
    assert "bio" not in entities(graph, "Curator", at=before)["ada"]
    with graph.write() as w:
        w.update("Curator", "ada", {"bio": "a life"})
    assert entities(graph, "Curator")["ada"]["bio"] == "a life"


def test_G03_a_wider_number_keeps_its_values(graph: Graph) -> None:
    graph.apply_schema(edit(("age: I32?", "age: I64?")))
    with graph.write() as w:
        w.update("Curator", "bob", {"age": 2**40})
    ages = {id: row["age"] for id, row in entities(graph, "Curator").items()}
    assert ages == {"ada": 36, "bob": 2**40, "cyd": 50}
    with pytest.raises(SchemaChangeRefused, match=r"^\[OG-MF-106\]"):
        graph.apply_schema(edit(("age: I32?", "age: String?")))


def test_G05_an_enum_loses_a_member_once_nobody_has_it(graph: Graph) -> None:
    fewer = edit(("enum(junior, senior)?", "enum(senior)?"))
    with pytest.raises(SchemaChangeRefused, match=r"^\[OG-MF-106\].*'bob'") as refused:
        graph.apply_schema(fewer)
    assert [v["id"] for v in refused.value.details["violations"]] == ["bob"]
    with graph.write() as w:
        w.update("Curator", "bob", {"level": "senior"})
    assert graph.apply_schema(fewer).applied


def test_G05_a_property_becomes_required_once_all_have_it(graph: Graph) -> None:
    required = edit(("enum(junior, senior)?", "enum(junior, senior, lead)"))
    with pytest.raises(SchemaChangeRefused, match="'cyd'"):
        graph.apply_schema(required)
    with graph.write() as w:
        w.update("Curator", "cyd", {"level": "junior"})
    assert graph.apply_schema(required).applied
    assert not graph.schema().nodes["Curator"].properties["level"].type.nullable


def test_G07_a_dropped_property_added_again_is_null(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    old = graph.schema().nodes["Curator"].properties["email"].property_id
    graph.apply_schema(WITHOUT_EMAIL)
    assert "email" not in entities(graph, "Curator")["ada"]
    graph.apply_schema(edit(("email: String? @unique", "email: String?")))
    assert {row["email"] for row in entities(graph, "Curator").values()} == {None}
    assert graph.schema().nodes["Curator"].properties["email"].property_id != old
    assert entities(graph, "Curator", at=before)["ada"]["email"] == "a@m"


def test_G09_types_go_and_older_commits_keep_them(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    kinds = [step.kind for step in graph.apply_schema(WITHOUT_HALL).plan.steps]
    assert kinds == ["drop_type", "drop_type"]
    assert set(graph.snapshot().pins) == {"node:Curator", "edge:Mentors"}
    with pytest.raises(TypeNotFound):
        graph.snapshot().pin("node:Hall")
    assert entities(graph, "Hall", at=before)["h1"]["capacity"] == 40
    assert set(graph.snapshot(commit=before).pins) == {
        "node:Curator",
        "node:Hall",
        "edge:Mentors",
        "edge:Guards",
    }


def test_V_21_G11_an_index_is_only_declared(graph: Graph) -> None:
    pins = graph.snapshot().pins
    assert graph.apply_schema(edit(("age: I32?", "age: I32? @index"))).applied
    assert graph.snapshot().pins == pins


def test_V_20_G13_ids_of_a_renamed_key_stay(tmp_path: Path) -> None:
    text = "node Shelf { zone: String  aisle: I32  @key(zone, aisle) }"
    graph = omnigraph.init(tmp_path / "shelves", text)
    graph.load([{"type": "Shelf", "data": {"zone": "n", "aisle": 7}}], mode="append")
    graph.apply_schema(
        'node Shelf { zone: String  zz_aisle: I32 @rename_from("aisle")  @key(zone, zz_aisle) }'
    )
    graph.load([{"type": "Shelf", "data": {"zone": "n", "zz_aisle": 7}}], mode="merge")
    assert entities(graph, "Shelf") == {'["7","n"]': {"zone": "n", "zz_aisle": 7}}


def test_V_4_G15_types_added_again_are_new(graph: Graph) -> None:
    before = graph.snapshot()
    old = graph.schema().nodes["Hall"].type_id
    graph.apply_schema(WITHOUT_HALL)
    graph.apply_schema(MUS)
    assert graph.schema().nodes["Hall"].type_id != old
    assert entities(graph, "Hall") == {}
    assert graph.snapshot().pin("node:Hall").ref.path != before.pin("node:Hall").ref.path
    with graph.write() as w:
        w.insert("Hall", {"code": "h1", "capacity": 5})
    assert [event.op for event in graph.history.entity("node:Hall", "h1")] == ["insert"]


def test_a_required_property_takes_a_given_value(graph: Graph) -> None:
    text = edit(("age: I32?", "age: I32?\n  score: F64\n  word: String"))
    with pytest.raises(SchemaChangeRefused, match=r"^\[OG-MF-103\]"):
        graph.apply_schema(text)
    graph.apply_schema(text, backfill={"Curator.score": 1.5, "node:Curator.word": "new"})
    assert {row["score"] for row in entities(graph, "Curator").values()} == {1.5}
    assert {row["word"] for row in entities(graph, "Curator").values()} == {"new"}


def test_a_required_property_needs_no_value_where_there_is_nothing(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node A { x: I32? }")
    assert graph.apply_schema("node A { x: I32? y: I32 }").applied


def test_a_property_that_nobody_has_to_have_any_more(graph: Graph) -> None:
    graph.apply_schema(edit(("age: I32?", "age: I32?\n  n: I64")), backfill={"Curator.n": 1})
    graph.apply_schema(edit(("age: I32?", "age: I32?\n  n: I64?")))
    with graph.write() as w:
        w.update("Curator", "ada", {"n": None})
    assert entities(graph, "Curator")["ada"]["n"] is None


# -- constraints -----------------------------------------------------------------------------------


def test_a_constraint_is_added_when_stored_data_keeps_to_it(graph: Graph) -> None:
    with graph.write() as w:
        w.update("Curator", "cyd", {"age": 36})
    unique = edit(("age: I32?", "age: I32? @unique"))
    with pytest.raises(SchemaChangeRefused, match="@unique violation") as refused:
        graph.apply_schema(unique)
    assert refused.value.details["total"] == 1
    with graph.write() as w:
        w.update("Curator", "cyd", {"age": 37})
    assert graph.apply_schema(unique).applied


def test_every_entity_in_the_way_is_named(graph: Graph) -> None:
    text = edit(("age: I32?", "age: I32? @range(age, 0..10)"), ("1..500", "1..10"))
    with pytest.raises(SchemaChangeRefused) as refused:
        graph.apply_schema(text)
    found = [v["id"] for v in refused.value.details["violations"]]
    assert found == ["ada", "cyd", "h1"]
    assert graph.schema().source == MUS


def test_a_constraint_that_goes_binds_nobody(graph: Graph) -> None:
    graph.apply_schema(edit(("  @range(capacity, 1..500)\n", "")))
    with graph.write() as w:
        w.update("Hall", "h1", {"capacity": 5000})
    with pytest.raises(SchemaChangeRefused, match="'h1'"):
        graph.apply_schema(MUS)


def test_cardinality_is_checked_when_it_gets_stricter(graph: Graph) -> None:
    with pytest.raises(SchemaChangeRefused, match="@card violation"):
        graph.apply_schema(edit(("0..2", "0..1")))
    assert graph.apply_schema(edit(("0..2", "0..3"))).applied
    assert graph.apply_schema(edit(("0..2", "2..3"))).applied


def test_interfaces_come_and_go(graph: Graph) -> None:
    text = edit(("node Hall {", "interface Sized { capacity: U32? }\nnode Hall implements Sized {"))
    assert graph.apply_schema(text).applied
    assert graph.schema().nodes["Hall"].implements == ("Sized",)
    assert graph.apply_schema(MUS).applied
    assert entities(graph, "Hall")["h1"]["capacity"] == 40


# -- apply -----------------------------------------------------------------------------------------


def test_V_13_an_equal_schema_makes_no_commit(graph: Graph) -> None:
    head = graph.snapshot().commit_id
    result = graph.apply_schema("// hello\n" + MUS)
    assert result.to_json() == {"supported": True, "applied": False, "steps": []}
    assert graph.snapshot().commit_id == head


def test_V_15_a_branch_has_its_own_schema(graph: Graph) -> None:
    graph.branches.create("side")
    graph.apply_schema(ADD_BIO, branch="side")
    with graph.write("side") as w:
        w.insert("Curator", {"handle": "dee", "bio": "x"})
    assert "bio" not in entities(graph, "Curator")["ada"]
    assert entities(graph, "Curator", branch="side")["dee"]["bio"] == "x"
    graph.apply_schema(WITHOUT_EMAIL)
    assert entities(graph, "Curator", branch="side")["ada"]["email"] == "a@m"


def test_V_16_an_unsupported_change_changes_nothing(graph: Graph) -> None:
    head = graph.snapshot()
    with pytest.raises(SchemaChangeRefused, match=r"^\[OG-MF-103\]") as refused:
        graph.apply_schema(edit(("age: I32?", "age: I32?\n  must: String")))
    assert refused.value.details["steps"][0]["entity"] == "node:Curator.must"
    with pytest.raises(SchemaChangeRefused, match=r"^edge:Mentors"):
        graph.apply_schema(edit(("Mentors: Curator -> Curator", "Mentors: Curator -> Hall")))
    with pytest.raises(SourceError):
        graph.apply_schema("node {")
    assert graph.snapshot() == head


def test_V_17_an_apply_is_one_commit(graph: Graph) -> None:
    commits = len(graph.history.commits())
    text = edit(
        ("age: I32?", "age: I64?\n  bio: String?"),
        ("node Hall", 'node Room @rename_from("Hall")'),
        ("-> Hall", "-> Room"),
        ("capacity: U32?", 'seats: U64? @rename_from("capacity")'),
        ("@range(capacity", "@range(seats"),
    )
    result = graph.apply_schema(text + "node New {}", actor="ann", message="reshape")
    (commit, *_) = graph.history.commits()
    assert len(graph.history.commits()) == commits + 1
    assert (commit.kind, commit.actor, commit.message) == ("schema_apply", "ann", "reshape")
    assert result.to_json()["graph_manifest_version"] == commit.manifest_version
    assert entities(graph, "Room")["h1"] == {"code": "h1", "seats": 40}


def test_V_17_a_mutation_is_prepared_again_under_the_new_schema(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    text = edit(("age: I32?", "age: I64?\n  bio: String?"))
    with meanwhile("record.before_put", lambda: other.apply_schema(text)):
        graph.mutate('query q() { insert Curator { handle: "eve", age: 1 } }')
    assert entities(graph, "Curator")["eve"] == {
        "age": 1,
        "bio": None,
        "email": None,
        "handle": "eve",
        "level": None,
        "tags": None,
    }


def test_V_17_what_was_collected_under_the_old_schema_is_refused(graph: Graph) -> None:
    text = edit(("email: String?", 'mail: String? @rename_from("email")'))
    with pytest.raises(SchemaChanged), graph.write() as w:
        w.insert("Curator", {"handle": "eve", "email": "e@m"})
        omnigraph.open(graph.uri).apply_schema(text)
    assert set(entities(graph, "Curator")) == {"ada", "bob", "cyd"}


def test_V_17_an_apply_meets_a_write_and_is_prepared_again(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)

    def insert() -> None:
        other.mutate('query q() { insert Curator { handle: "eve", age: 7 } }')

    with meanwhile("record.before_put", insert):
        graph.apply_schema(edit(("age: I32?", "age: I64?\n  n: I32")), backfill={"Curator.n": 5})
    assert {row["n"] for row in entities(graph, "Curator").values()} == {5}
    assert entities(graph, "Curator")["eve"]["age"] == 7


def test_V_17_an_apply_checks_what_a_write_brought_meanwhile(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)

    def insert() -> None:
        other.mutate('query q() { insert Curator { handle: "eve", age: 999 } }')

    text = edit(("age: I32?", "age: I32? @range(age, 0..99)"), ("capacity: U32?", "capacity: U64?"))
    with meanwhile("record.before_put", insert), pytest.raises(SchemaChangeRefused, match="'eve'"):
        graph.apply_schema(text)
    assert graph.schema().source == MUS


def test_V_18_a_renamed_type_keeps_its_history(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    pin = graph.snapshot().pin("node:Hall")
    graph.apply_schema(
        edit(("node Hall", 'node Room @rename_from("Hall")'), ("-> Hall", "-> Room"))
    )
    assert graph.snapshot().pin("node:Room").ref == pin.ref
    with pytest.raises(SourceError):
        graph.query("query q() { match { $h: Hall } return { $h } }")
    with graph.write() as w:
        w.update("Room", "h1", {"capacity": 41})
    events = [event.op for event in graph.history.entity("node:Room", "h1")]
    assert events == ["update", "insert"]
    assert entities(graph, "Hall", at=before)["h1"]["capacity"] == 40


def test_V_19_an_old_commit_is_read_with_the_schema_it_had(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    graph.apply_schema(WITHOUT_EMAIL)
    query = "query q() { match { $c: Curator } return { $c.email as email } }"
    with pytest.raises(SourceError):
        graph.query(query)
    assert {row["email"] for row in graph.query(query, at=before)} == {"a@m", None}
    assert graph.schema(at=before).source == MUS


def test_a_warm_handle_of_another_process_sees_the_new_schema(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    query = "query q() { match { $c: Curator { handle: 'ada' } } return { $c } }".replace("'", '"')
    assert "bio" not in next(iter(other.query(query)))["c"]
    graph.apply_schema(ADD_BIO)
    assert next(iter(other.query(query)))["c"]["bio"] is None


def test_an_enum_with_more_members_is_read_warm(graph: Graph) -> None:
    query = 'query q() { match { $c: Curator { level: "lead" } } return { $c.handle as handle } }'
    counts = "query q() { match { $c: Curator } return { $c.level as level, count($c) as n } }"
    list(graph.query(counts))
    graph.apply_schema(edit(("junior, senior", "junior, lead, senior")))
    with graph.write() as w:
        w.update("Curator", "cyd", {"level": "lead"})
    assert [row["handle"] for row in graph.query(query)] == ["cyd"]
    assert len(list(graph.query(counts))) == 3


def test_an_added_column_is_no_update_of_every_entity(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    graph.apply_schema(edit(("age: I32?", "age: I64?\n  bio: String?\n  n: I32?")))
    assert list(graph.diff(before, "main")) == []
    assert [event.op for event in graph.history.entity("node:Curator", "ada")] == ["insert"]
    with pytest.raises(ChangesRefused, match="schema"):
        graph.history.commit_changes(graph.snapshot().commit_id)
    with graph.write() as w:
        w.update("Curator", "ada", {"n": 4})
    assert [change.id for change in graph.diff(before, "main")] == ["ada"]


def test_I05_adding_an_empty_type_is_an_empty_block(graph: Graph) -> None:
    graph.apply_schema(MUS + "node New {}")
    assert graph.history.commit_changes(graph.snapshot().commit_id).block.changes == []


# -- bringing back ---------------------------------------------------------------------------------


def test_undrop_brings_a_property_back_with_its_values(graph: Graph) -> None:
    graph.apply_schema(WITHOUT_EMAIL)
    with graph.write() as w:
        w.update("Curator", "ada", {"age": 37})
        w.insert("Curator", {"handle": "new"})
    result = graph.apply_schema(MUS, undrop=["Curator.email"])
    kinds = [step.kind for step in result.plan.steps]
    assert kinds == ["undrop_property", "add_constraint"]
    found = {id: row["email"] for id, row in entities(graph, "Curator").items()}
    assert found == {"ada": "a@m", "bob": None, "cyd": None, "new": None}


def test_undrop_brings_types_back_when_their_edges_still_have_ends(graph: Graph) -> None:
    graph.apply_schema(WITHOUT_HALL)
    graph.branches.create("side")
    with graph.write() as w:
        w.delete("Curator", "ada")
    with pytest.raises(SchemaChangeRefused, match="not found in Curator"):
        graph.apply_schema(MUS, undrop=["Hall", "Guards"])
    graph.apply_schema(MUS, branch="side", undrop=["Hall", "edge:Guards"])
    assert entities(graph, "Hall", branch="side")["h1"]["capacity"] == 40
    with graph.write("side") as w:
        w.update("Hall", "h1", {"capacity": 41})
    assert entities(graph, "Hall", branch="side")["h1"]["capacity"] == 41


def test_nothing_comes_back_that_was_not_dropped(graph: Graph) -> None:
    for name in ("Nobody", "Curator.email", "Nobody.email"):
        with pytest.raises(NotFound):
            graph.apply_schema(ADD_BIO, undrop=[name])


# -- dropping for good -----------------------------------------------------------------------------


def bytes_below(graph: Graph, word: bytes) -> list[str]:
    where = Path(graph.uri.removeprefix("file://"))
    tables = [where / "nodes", where / "edges"]
    files = [path for table in tables for path in table.rglob("*") if path.is_file()]
    return [str(path) for path in files if word in path.read_bytes()]


def test_V_14_a_property_is_gone_for_good(graph: Graph) -> None:
    with graph.write() as w:
        w.update("Curator", "cyd", {"email": "secret-word"})
        w.delete("Curator", "bob")
    before = graph.snapshot().commit_id
    pin = graph.snapshot().pin("node:Curator")
    fragments = len(repository_of(graph).tables.open(pin.ref).fragments)
    assert bytes_below(graph, b"secret-word")
    result = graph.apply_schema(WITHOUT_EMAIL, allow_data_loss=True)
    assert [step.mode for step in result.plan.steps] == ["hard"]
    assert bytes_below(graph, b"secret-word") == []
    table = repository_of(graph).tables.open(graph.snapshot().pin("node:Curator").ref)
    assert (len(table.fragments), table.rows) == (fragments, 2)
    assert entities(graph, "Curator")["ada"] == {
        "age": 36,
        "handle": "ada",
        "level": "senior",
        "tags": None,
    }
    with pytest.raises(HistoryReclaimed):
        entities(graph, "Curator", at=before)
    with pytest.raises(NotFound):
        graph.apply_schema(MUS, undrop=["Curator.email"])
    with graph.write() as w:
        w.update("Curator", "ada", {"age": 1})
    graph.maintenance.build_indexes()
    assert set(entities(omnigraph.open(graph.uri), "Curator")) == {"ada", "cyd"}
    with pytest.raises(HistoryReclaimed):
        list(graph.history.entity("node:Curator", "ada"))


def test_V_14_G09_types_are_gone_for_good(graph: Graph) -> None:
    path = graph.snapshot().pin("node:Hall").ref.path
    graph.apply_schema(WITHOUT_HALL, allow_data_loss=True)
    with pytest.raises(NotFound):
        graph.apply_schema(MUS, undrop=["Hall", "Guards"])
    graph.apply_schema(MUS)
    assert graph.snapshot().pin("node:Hall").ref.path != path
    assert entities(graph, "Hall") == {}


def test_V_14_nothing_is_removed_that_others_hold(graph: Graph) -> None:
    graph.branches.create("side")
    graph.tags.create("v1")
    with pytest.raises(SchemaChangeRefused, match="branch side, tag v1"):
        graph.apply_schema(WITHOUT_EMAIL, allow_data_loss=True)
    with pytest.raises(SchemaChangeRefused, match="branch side, tag v1"):
        graph.apply_schema(WITHOUT_HALL, allow_data_loss=True)
    graph.branches.delete("side", force=True)
    graph.tags.delete("v1")
    assert graph.apply_schema(WITHOUT_HALL, allow_data_loss=True).applied


def test_V_14_a_removal_that_was_cut_short_is_finished(graph: Graph) -> None:
    with graph.write() as w:
        w.update("Curator", "cyd", {"email": "secret-word"})
    failpoints.arm("purge.before_files", "error")
    try:
        assert graph.apply_schema(WITHOUT_EMAIL, allow_data_loss=True).purge_pending
    finally:
        failpoints.disarm_all()
    assert bytes_below(graph, b"secret-word")
    assert set(entities(omnigraph.open(graph.uri), "Curator")) == {"ada", "bob", "cyd"}
    assert bytes_below(graph, b"secret-word") == []


def test_a_bulk_load_goes_on_after_a_schema_change(graph: Graph) -> None:
    graph.apply_schema(
        edit(("age: I32?", "age: I64?\n  bio: String?"), ("  email: String? @unique\n", ""))
    )
    records = [
        {"type": "Curator", "data": {"handle": "ada", "age": 2**40, "bio": "b"}},
        {"type": "Curator", "data": {"handle": "eve"}},
        {"edge": "Mentors", "from": "eve", "to": "ada"},
    ]
    lines = "\n".join(map(json.dumps, records)).encode()
    bulk_graph(graph).load(lines, mode="merge")
    found = entities(graph, "Curator")
    assert (found["ada"]["age"], found["ada"]["bio"]) == (2**40, "b")
    assert set(found) == {"ada", "bob", "cyd", "eve"}
    graph.apply_schema(edit(("age: I32?", "age: I64?\n  bio: String?")), undrop=["Curator.email"])
    assert entities(graph, "Curator")["eve"]["email"] is None


def test_upkeep_goes_on_after_a_schema_change(graph: Graph) -> None:
    graph.apply_schema(edit(("age: I32?", "age: I64?"), ("  email: String? @unique\n", "")))
    for n in range(4):
        graph.load([{"type": "Curator", "data": {"handle": f"n{n}", "age": n}}], mode="append")
    before = entities(graph, "Curator")
    graph.maintenance.optimize()
    graph.maintenance.build_indexes()
    assert entities(graph, "Curator") == before
    graph.apply_schema(edit(("age: I32?", "age: I64?")), undrop=["Curator.email"])
    assert entities(graph, "Curator")["ada"]["email"] == "a@m"


def test_V_17_writers_and_a_changing_schema_lose_nothing(graph: Graph) -> None:
    """Acknowledged inserts survive, in the new shape; what is refused says why."""
    done: dict[int, list[str]] = {}
    moved, over = threading.Semaphore(0), threading.Event()

    def insert(worker: int) -> None:
        own, count = omnigraph.open(graph.uri), 0
        acknowledged = done.setdefault(worker, [])
        while not over.is_set():
            handle = f"w{worker}-{count}"
            count += 1
            try:
                own.mutate(f'query q() {{ insert Curator {{ handle: "{handle}", age: 1 }} }}')
            except Conflict:
                continue
            acknowledged.append(handle)
            moved.release()

    workers = [threading.Thread(target=insert, args=(n,)) for n in range(2)]
    for worker in workers:
        worker.start()
    try:
        text = edit(("age: I32?", "age: I64?"))
        graph.apply_schema(text)
        for n in range(6):
            assert moved.acquire(timeout=60), "writers stand still"
            text = edit(("age: I64?", f"age: I64?\n  n{n}: I32?"), text=text)
            graph.apply_schema(text, backfill={f"Curator.n{n}": n})
    finally:
        over.set()
        for worker in workers:
            worker.join()
    found = entities(graph, "Curator")
    assert {handle for handles in done.values() for handle in handles} <= set(found)
    assert all(set(row) == {*found["ada"]} for row in found.values())
    assert [found["ada"][f"n{n}"] for n in range(6)] == [0, 1, 2, 3, 4, 5]


def test_an_index_of_a_renamed_property_serves_nobody_else(graph: Graph) -> None:
    graph.maintenance.build_indexes()
    text = edit(("email: String? @unique", 'mail: String? @unique @rename_from("email")'))
    graph.apply_schema(text)
    graph.apply_schema(edit(("mail:", "email: String? @unique\n  mail:"), text=text))
    with graph.write() as w:
        w.update("Curator", "bob", {"email": "b@m"})
    graph.maintenance.build_indexes()
    for name, value, id in (("mail", "a@m", "ada"), ("email", "b@m", "bob")):
        query = f'query q() {{ match {{ $c: Curator {{ {name}: "{value}" }} }} return {{ $c }} }}'
        fresh = omnigraph.open(graph.uri)
        assert [row["c"]["id"] for row in fresh.query(query)] == [id]
    with pytest.raises(ConstraintViolation), graph.write() as w:
        w.insert("Curator", {"handle": "new", "mail": "a@m"})
