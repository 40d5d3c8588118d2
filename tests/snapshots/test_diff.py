"""Differences between snapshots, by value."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.graphs import people_graph

import omnigraph
from omnigraph import Graph
from omnigraph.errors import CursorRejected, InvalidInput, RefNotFound, ResourceLimit
from omnigraph.snapshots.diff import Diff
from omnigraph.snapshots.equality import same_values
from omnigraph.storage.lance.staging.compaction_tiers import SMALL_FRAGMENTS_MAX

ODD = """
node Thing {
  name: String @key
  text: String?
  words: [String]?
  ratio: F64?
  place: Vector(2)?
  raw: Blob?
}
"""


@pytest.fixture
def people(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "people")


@pytest.fixture
def things(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "things", ODD)
    with graph.write() as w:
        w.insert("Thing", {"name": "t", "words": ["a"], "ratio": 1.0, "place": [1.0, 2.0]})
    return graph


def shown(diff: Diff) -> list[tuple[str, str, str]]:
    return [(change.type_name, change.id, str(change.op)) for change in diff]


def set_values(**values: Any) -> Callable[[Graph], str]:
    def write(graph: Graph) -> str:
        with graph.write() as w:
            w.update("Thing", "t", values)
        return graph.history.commits(limit=1)[0].commit_id

    return write


def test_every_op_is_shown_with_its_images(people: Graph) -> None:
    people.branches.create("dev")
    with people.write("dev") as w:
        w.insert("Person", {"name": "cy", "age": 3})
        w.update("Person", "ana", {"age": 31})
        w.delete("City", "Oslo")

    changes = {(c.type_name, str(c.op)): c for c in people.diff("main", "dev")}

    assert set(changes) == {
        ("LivesIn", "delete"),
        ("City", "delete"),
        ("Person", "update"),
        ("Person", "insert"),
    }
    update = changes["Person", "update"]
    assert update.before == {"properties": {"name": "ana", "age": 30}}
    assert update.after == {"properties": {"name": "ana", "age": 31}}
    assert changes["Person", "insert"].before is None
    assert changes["LivesIn", "delete"].endpoints == {"from": "ana", "to": "Oslo"}
    assert changes["LivesIn", "delete"].after is None


def test_c2_edges_come_before_nodes_and_ids_in_order(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        for name in ("z", "c", "m"):
            w.insert("Person", {"name": name})
        w.insert_edge("Knows", "z", "c")

    found = [(c.kind, c.id) for c in people.diff(before, "main")]

    assert [kind for kind, _ in found] == ["edge", "node", "node", "node"]
    assert [id for _, id in found[1:]] == ["c", "m", "z"]


def test_a_difference_read_backwards_is_its_mirror(people: Graph) -> None:
    people.branches.create("dev")
    with people.write("dev") as w:
        w.update("Person", "bo", {"age": 5})
        w.insert("Person", {"name": "new"})
    with people.write() as w:
        w.update("Person", "ana", {"age": 1})

    forth = {(c.id, c.op): (c.before, c.after) for c in people.diff("main", "dev")}
    back = {(c.id, c.op): (c.before, c.after) for c in people.diff("dev", "main")}

    mirror = {"insert": "delete", "delete": "insert", "update": "update"}
    assert back == {(id, mirror[op]): (new, old) for (id, op), (old, new) in forth.items()}
    assert len(forth) == 3


def test_c4_a_rewrite_with_the_same_values_is_no_change(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        w.update("Person", "ana", {"age": 30})
        w.replace("Person", {"name": "bo"})

    assert shown(people.diff(before, "main")) == []


def test_b25_what_came_and_went_does_not_show(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        w.insert("Person", {"name": "brief"})
        w.update("Person", "ana", {"age": 99})
    with people.write() as w:
        w.delete("Person", "brief")
        w.update("Person", "ana", {"age": 30})

    assert shown(people.diff(before, "main")) == []


def test_deleted_and_made_again_is_an_update_or_nothing(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    for values in ({"name": "bo", "age": 1}, {"name": "bo"}):
        with people.write() as w:
            w.delete("Person", "bo")
        with people.write() as w:
            w.insert("Person", values)
        expected = [("Person", "bo", "update")] if "age" in values else []
        found = [c for c in shown(people.diff(before, "main")) if c[0] == "Person"]
        assert found == expected


def test_an_overwrite_load_shows_only_what_differs(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    people.load(
        [
            {"type": "Person", "data": {"name": "ana", "age": 30}},
            {"type": "Person", "data": {"name": "bo", "age": 2}},
            {"type": "Person", "data": {"name": "cy"}},
        ],
        mode="overwrite",
    )

    assert shown(people.diff(before, "main", types=["Person"])) == [
        ("Person", "bo", "update"),
        ("Person", "cy", "insert"),
    ]


def test_upkeep_in_between_changes_nothing(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    for n in range(SMALL_FRAGMENTS_MAX + 4):
        with people.write() as w:
            w.update("Person", "ana", {"age": n})
            w.insert("Person", {"name": f"p{n:02d}"})
    versions = [pin.ref.version for pin in people.snapshot().pins.values()]
    assert max(versions) > SMALL_FRAGMENTS_MAX + 5, "upkeep did not come"

    found = people.diff(before, "main").stats

    assert found.counts == {"node:Person": {"update": 1, "insert": SMALL_FRAGMENTS_MAX + 4}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"text": None}, {"text": ""}),
        ({"words": []}, {"words": None}),
        ({"words": ["a", "b"]}, {"words": ["b", "a"]}),
        ({"words": ["ab"]}, {"words": ["a", "b"]}),
        ({"ratio": 0.0}, {"ratio": -0.0}),
        ({"place": [1.0, 2.0]}, {"place": [2.0, 1.0]}),
        ({"raw": b""}, {"raw": None}),
        ({"raw": b"one"}, {"raw": b"two"}),
    ],
)
def test_b22_different_values_are_different(
    things: Graph, first: dict[str, Any], second: dict[str, Any]
) -> None:
    one, two = set_values(**first)(things), set_values(**second)(things)
    again = set_values(**first)(things)

    assert shown(things.diff(one, two)) == [("Thing", "t", "update")]
    assert shown(things.diff(one, again)) == []


def test_blobs_are_compared_by_content_wherever_they_are_stored(things: Graph) -> None:
    large = bytes(range(256)) * 1_000
    one = set_values(raw=large)(things)
    with things.write() as w:
        w.delete("Thing", "t")
    with things.write() as w:
        w.insert(
            "Thing",
            {"name": "t", "words": ["a"], "ratio": 1.0, "place": [1.0, 2.0], "raw": large},
        )

    assert shown(things.diff(one, "main")) == []
    change = next(iter(things.diff(one, set_values(raw=b"x")(things))))
    assert change.before is not None
    assert change.before["properties"]["raw"] == "base64:" + base64.b64encode(large).decode()


def test_same_values_on_columns_with_nulls_inside_lists() -> None:
    left = pa.array([["a", None], [], None, ["x"], [None]], pa.list_(pa.string()))
    right = pa.array([["a", None], [], None, [None], [None]], pa.list_(pa.string()))

    assert same_values(left, right).tolist() == [True, True, True, False, True]


def test_floats_are_the_same_bit_by_bit() -> None:
    nan = float("nan")
    left, right = pa.array([nan, 0.0, 1.5, None]), pa.array([nan, -0.0, 1.5, nan])

    assert same_values(left, right).tolist() == [True, False, True, False]


def test_c3_filters_restrict_what_is_shown(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        w.insert("Person", {"name": "new"})
        w.update("Person", "ana", {"age": 1})
        w.insert("City", {"name": "Rome"})
        w.insert_edge("LivesIn", "new", "Rome")

    assert {c.type_name for c in people.diff(before, "main", kinds=["edge"])} == {"LivesIn"}
    assert {c.id for c in people.diff(before, "main", types=["City"])} == {"Rome"}
    assert {c.id for c in people.diff(before, "main", ops=["update"])} == {"ana"}
    assert people.diff(before, "main", ops=["insert"]).stats.total == 3
    with pytest.raises(InvalidInput):
        people.diff(before, "main", ops=["upsert"])


def test_pages_put_together_are_the_whole(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        for n in range(7):
            w.insert("Person", {"name": f"p{n}"})
            w.insert("City", {"name": f"c{n}"})
    diff = people.diff(before, "main")
    pages, token = [], None
    while True:
        page = diff.page(3, token)
        pages.append([c.id for c in page.changes])
        token = page.next_page_token
        if token is None:
            break

    assert [len(page) for page in pages] == [3, 3, 3, 3, 2]
    assert [id for page in pages for id in page] == [c.id for c in diff]


def test_a_token_of_something_else_is_refused(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        w.insert("Person", {"name": "a"})
        w.insert("Person", {"name": "b"})
    token = people.diff(before, "main").page(1).next_page_token
    assert token is not None

    for other in (people.diff("main", before), people.diff(before, "main", ops=["insert"])):
        with pytest.raises(CursorRejected):
            other.page(1, token)
    with pytest.raises(CursorRejected):
        people.diff(before, "main").page(1, "nonsense")
    with pytest.raises(InvalidInput):
        people.diff(before, "main").page(0)
    with pytest.raises(ResourceLimit):
        people.diff(before, "main").page(10**9)


def test_targets_are_branches_commits_and_times(people: Graph) -> None:
    first = people.history.commits()[-1]
    with people.write("main") as w:
        w.insert("Person", {"name": "late"})
    newest = people.history.commits(limit=1)[0]
    when = f"{(newest.created_at_us - 1) / 1e6:.6f}"
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(float(when), UTC).isoformat()

    assert people.diff(first.commit_id, "main").stats.total == 6
    assert shown(people.diff(moment, "branch:main")) == [("Person", "late", "insert")]
    assert shown(people.diff(f"main@{moment}", f"commit:{newest.commit_id}")) != []
    for unknown in ("nobody", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "nobody@2020-01-01"):
        with pytest.raises(RefNotFound):
            people.diff(unknown, "main")


def test_the_wire_form_is_what_c1_says(people: Graph) -> None:
    before = people.history.commits(limit=1)[0].commit_id
    with people.write() as w:
        w.insert_edge("Knows", "bo", "ana")

    (change,) = people.diff(before, "main")
    body = json.loads(json.dumps(change.to_json()))

    assert list(body)[:6] == [
        "kind",
        "type_name",
        "id",
        "op",
        "published_dataset_version",
        "endpoints",
    ]
    assert body["after"]["properties"] == {"since": None}
    assert body["endpoints"] == {"from": "bo", "to": "ana"}
