"""The change feed: positions, cuts, cursors, tokens, gaps and baselines (C-10 to C-26)."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    ChangeFeedGap,
    ChangesRefused,
    CommitNotFound,
    CursorRejected,
    HistoryReclaimed,
    InvalidInput,
    OmnigraphError,
    ResourceLimit,
    TypeNotFound,
)
from omnigraph.history.page_tokens import TOKEN_CHARACTERS_MAX
from omnigraph.storage import failpoints
from tests.graphs import PEOPLE, people_graph
from tests.history.schemas import publish_schema


@pytest.fixture(autouse=True)
def _disarm() -> Iterator[None]:
    yield
    failpoints.disarm_all()


def age(graph: Graph, value: int, branch: str = "main") -> str:
    """One commit that sets somebody's age; its id."""
    with graph.write(branch) as w:
        w.update("Person", "ana", {"age": value})
    return graph.history.commits(branch, limit=1)[0].commit_id


def three_changes(graph: Graph) -> str:
    with graph.write() as w:
        for name in ("x", "y", "z"):
            w.insert("Person", {"name": name})
    return graph.history.commits(limit=1)[0].commit_id


class TestPositions:
    def test_c20_now_is_the_default_and_gives_a_cursor_and_no_blocks(self, people: Graph) -> None:
        page = people.history.changes()

        assert page.blocks == []
        assert page.caught_up
        made = age(people, 1)
        following = people.history.changes(cursor=page.cursor)
        assert [block.commit.commit_id for block in following.blocks] == [made]

    def test_c20_the_beginning_is_after_the_first_commit(self, people: Graph) -> None:
        page = people.history.changes(start="beginning")

        ids = [commit.commit_id for commit in people.history.commits()][::-1]
        assert [block.commit.commit_id for block in page.blocks] == ids[1:]

    def test_c20_after_a_commit(self, people: Graph) -> None:
        ids = [commit.commit_id for commit in people.history.commits()][::-1]

        page = people.history.changes(start=f"after:{ids[1]}")

        assert [block.commit.commit_id for block in page.blocks] == ids[2:]

    def test_c23_a_start_after_a_commit_of_another_branch_is_rejected(self, people: Graph) -> None:
        people.branches.create("dev")
        elsewhere = age(people, 5, "dev")

        with pytest.raises(CursorRejected, match=r"^the cursor or page token cannot be used: "):
            people.history.changes(start=f"after:{elsewhere}")

    def test_two_positions_are_refused(self, people: Graph) -> None:
        cursor = people.history.changes().cursor

        with pytest.raises(InvalidInput, match="start and cursor"):
            people.history.changes(start="now", cursor=cursor)

    @pytest.mark.parametrize("start", ["yesterday", "after", "AFTER:x"])
    def test_an_unknown_start_is_refused(self, people: Graph, start: str) -> None:
        with pytest.raises(InvalidInput, match="not a position"):
            people.history.changes(start=start)

    def test_an_unknown_branch_is_refused(self, people: Graph) -> None:
        with pytest.raises(BranchNotFound):
            people.history.changes("nowhere")


class TestPages:
    def test_i07_c22_pages_inside_a_block_have_no_cursor(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        made = three_changes(people)

        pages = [people.history.changes(cursor=cursor, limit=1)]
        later = age(people, 77)
        while pages[-1].next_page_token is not None:
            assert pages[-1].cursor is None
            assert pages[-1].caught_up is None
            pages.append(people.history.changes(page_token=pages[-1].next_page_token, limit=1))

        found = [c.id for page in pages for block in page.blocks for c in block.changes]
        assert found == ["x", "y", "z"]
        assert {block.commit.commit_id for page in pages for block in page.blocks} == {made}
        assert pages[-1].caught_up, "what landed meanwhile is not part of this poll"
        after = people.history.changes(cursor=pages[-1].cursor)
        assert [block.commit.commit_id for block in after.blocks] == [later]

    def test_c22_a_cursor_may_be_used_again(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        age(people, 1)

        first, second = (people.history.changes(cursor=cursor) for _ in range(2))

        assert first == second

    def test_c21_a_poll_ends_after_so_many_commits(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        ids = [age(people, value) for value in (1, 2, 3)]

        page = people.history.changes(cursor=cursor, commits_max=2)

        assert [block.commit.commit_id for block in page.blocks] == ids[:2]
        assert page.caught_up is False
        rest = people.history.changes(cursor=page.cursor, commits_max=2)
        assert [block.commit.commit_id for block in rest.blocks] == ids[2:]
        assert rest.caught_up

    def test_c14_a_page_holds_about_so_many_bytes(self, people: Graph) -> None:
        made = three_changes(people)

        page = people.history.commit_changes(made, bytes_max=1)

        assert [change.id for change in page.changes] == ["x"], "a large change comes alone"
        assert page.next_page_token is not None
        following = people.history.commit_changes(
            made, bytes_max=1, page_token=page.next_page_token
        )
        assert [change.id for change in following.changes] == ["y"]

    def test_c14_the_last_page_of_a_commit_has_no_token(self, people: Graph) -> None:
        made = three_changes(people)

        page = people.history.commit_changes(made, limit=2)
        rest = people.history.commit_changes(made, limit=2, page_token=page.next_page_token)

        assert [change.id for change in page.changes + rest.changes] == ["x", "y", "z"]
        assert rest.next_page_token is None

    @pytest.mark.parametrize(
        ("limits", "resource"),
        [
            ({"limit": 8193}, "commit_changes_page_changes"),
            ({"bytes_max": 32 * 1024 * 1024 + 1}, "commit_changes_page_bytes"),
            ({"commits_max": 513}, "change_feed_commits_per_poll"),
        ],
    )
    def test_c14_c21_more_than_a_ceiling_is_refused(
        self, people: Graph, limits: dict[str, int], resource: str
    ) -> None:
        with pytest.raises(ResourceLimit) as caught:
            people.history.changes(**limits)  # type: ignore[arg-type]
        assert caught.value.details["resource"] == resource

    @pytest.mark.parametrize("name", ["limit", "bytes_max", "commits_max"])
    def test_c14_nothing_is_no_page(self, people: Graph, name: str) -> None:
        with pytest.raises(InvalidInput):
            people.history.changes(**{name: 0})  # type: ignore[arg-type]

    def test_an_id_too_long_for_a_token_asks_for_larger_pages(self, people: Graph) -> None:
        with people.write() as w:
            w.insert("Person", {"name": "a" * TOKEN_CHARACTERS_MAX})
            w.insert("Person", {"name": "b"})
        made = people.history.commits(limit=1)[0].commit_id

        with pytest.raises(ResourceLimit) as caught:
            people.history.commit_changes(made, limit=1)
        assert caught.value.details["resource"] == "change_continuation_token_encoded_bytes"
        assert len(people.history.commit_changes(made).changes) == 2


class TestTokens:
    """C-23: what a cursor or a page token is bound to."""

    def reject(self, graph: Graph, *arguments: str, **given: Any) -> str:
        with pytest.raises(
            CursorRejected, match=r"^the cursor or page token cannot be used: "
        ) as caught:
            graph.history.changes(*arguments, **given)
        assert caught.value.status == 400
        return caught.value.message

    def test_another_graph(self, people: Graph, tmp_path: Path) -> None:
        other = people_graph(tmp_path / "other")

        assert "graph" in self.reject(other, cursor=people.history.changes().cursor)

    def test_another_branch(self, people: Graph) -> None:
        people.branches.create("dev")

        assert "branch" in self.reject(people, "dev", cursor=people.history.changes().cursor)

    def test_a_branch_that_was_deleted_and_made_again(self, people: Graph) -> None:
        people.branches.create("dev")
        cursor = people.history.changes("dev").cursor
        people.branches.delete("dev", force=True)
        with pytest.raises(BranchNotFound):
            people.history.changes("dev", cursor=cursor)
        people.branches.create("dev")

        assert "branch" in self.reject(people, "dev", cursor=cursor)

    def test_another_filter(self, people: Graph) -> None:
        cursor = people.history.changes(types=["Person"]).cursor

        assert "filter" in self.reject(people, cursor=cursor)
        assert "filter" in self.reject(people, cursor=cursor, types=["City"])
        assert people.history.changes(cursor=cursor, types=["Person"]).caught_up

    def test_another_kind_of_token(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        made = three_changes(people)
        token = people.history.changes(cursor=cursor, limit=1).next_page_token

        assert "page token" in self.reject(people, cursor=token)
        assert "cursor" in self.reject(people, page_token=cursor)
        of_commit = people.history.commit_changes(made, limit=1).next_page_token
        assert "commit" in self.reject(people, page_token=of_commit)

    def test_another_commit(self, people: Graph) -> None:
        first, second = three_changes(people), age(people, 3)
        token = people.history.commit_changes(first, limit=1).next_page_token

        with pytest.raises(CursorRejected):
            people.history.commit_changes(second, page_token=token)
        with pytest.raises(CursorRejected):
            people.history.commit_changes(first, page_token=token, ops=["insert"])

    def test_every_damaged_token(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        assert cursor is not None
        damaged = ["", "x", "é", "a" * 5000, cursor[:-1], cursor[1:], f"A{cursor[1:]}"]
        middle = len(cursor) // 2
        other = "A" if cursor[middle] != "A" else "B"
        damaged.append(cursor[:middle] + other + cursor[middle + 1 :])
        for text in damaged:
            assert "damaged" in self.reject(people, cursor=text)


class TestRefusals:
    def test_c13_the_first_commit_has_no_changes(self, people: Graph) -> None:
        first = people.history.commits()[-1].commit_id

        with pytest.raises(ChangesRefused) as caught:
            people.history.commit_changes(first)
        assert caught.value.status == 409
        assert caught.value.details == {"reason": "parentless_commit", "graph_commit_id": first}

    def test_an_unknown_commit(self, people: Graph) -> None:
        with pytest.raises(CommitNotFound):
            people.history.commit_changes("0" * 26)

    def test_i05_c13_a_property_more_is_a_boundary_whatever_the_filter(self, people: Graph) -> None:
        made = publish_schema(people, PEOPLE.replace("age: I32?", "age: I32?\n  bio: String?"))

        with pytest.raises(ChangesRefused) as caught:
            people.history.commit_changes(made, types=["City"])
        assert caught.value.details == {
            "reason": "schema_boundary",
            "graph_commit_id": made,
            "type_name": "Person",
        }

    def test_i05_c13_an_empty_type_more_is_an_empty_block(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        made = publish_schema(people, PEOPLE + "\nnode Club { name: String @key }")
        with people.write() as w:
            w.insert("Club", {"name": "chess"})

        page = people.history.changes(cursor=cursor)

        assert [len(block.changes) for block in page.blocks] == [0, 1]
        assert page.blocks[0].commit.commit_id == made

    def test_c24_a_boundary_later_in_a_poll_ends_the_page_before_it(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        before = age(people, 1)
        publish_schema(people, PEOPLE.replace("age: I32?", "age: I32?\n  bio: String?"))

        page = people.history.changes(cursor=cursor)

        assert [block.commit.commit_id for block in page.blocks] == [before]
        assert page.caught_up is False
        with pytest.raises(ChangesRefused):
            people.history.changes(cursor=page.cursor)

    @pytest.mark.parametrize("name", ["kinds", "ops"])
    def test_an_unknown_kind_or_op_is_refused(self, people: Graph, name: str) -> None:
        with pytest.raises(InvalidInput):
            people.history.changes(**{name: ["edges"]})  # type: ignore[arg-type]

    def test_a_type_that_never_was_is_refused(self, people: Graph) -> None:
        with pytest.raises(TypeNotFound, match="Person"):
            people.history.changes(types=["Persn"])

    def test_a_write_that_was_rolled_back_is_an_empty_block(self, people: Graph) -> None:
        cursor = people.history.changes().cursor
        failpoints.arm("table.after_commit", "error")
        with pytest.raises(OmnigraphError), people.write() as w:
            w.insert("Person", {"name": "x"})
            w.insert("City", {"name": "y"})
        failpoints.disarm_all()
        made = age(people, 9)

        page = people.history.changes(cursor=cursor)

        assert [block.commit.kind for block in page.blocks] == ["rollback", "write"]
        assert [len(block.changes) for block in page.blocks] == [0, 1]
        history = list(people.history.entity("Person", "ana"))
        assert history[0].commit.commit_id == made
        assert [event.op for event in history] == ["update", "insert"]


class TestGaps:
    """C-24: what was cleaned up cannot be read."""

    @pytest.fixture
    def cleaned(self, people: Graph, tmp_path: Path) -> tuple[Graph, list[str], str]:
        """A copy without the version that the second of three commits made."""
        cursor = people.history.changes().cursor
        ids = [age(people, value) for value in (1, 2, 3)]
        ref = people.snapshot(commit=ids[1]).pin("node:Person").ref
        shutil.copytree(tmp_path / "people", tmp_path / "copy")
        name = f"{2**64 - 1 - ref.version:020d}.manifest"
        (tmp_path / "copy" / ref.path / "_versions" / name).unlink()
        assert cursor is not None
        return omnigraph.open(tmp_path / "copy", read_only=True), ids, cursor

    def test_a_gap_later_in_a_poll_ends_the_page_before_it(
        self, cleaned: tuple[Graph, list[str], str]
    ) -> None:
        graph, ids, cursor = cleaned

        page = graph.history.changes(cursor=cursor)

        assert [block.commit.commit_id for block in page.blocks] == ids[:1]
        assert page.caught_up is False
        with pytest.raises(ChangeFeedGap) as caught:
            graph.history.changes(cursor=page.cursor)
        assert caught.value.status == 410
        assert caught.value.details == {
            "cursor": page.cursor,
            "first_unreadable_commit_id": ids[1],
        }

    def test_a_commit_whose_parent_was_cleaned_up(
        self, cleaned: tuple[Graph, list[str], str]
    ) -> None:
        graph, ids, _ = cleaned

        with pytest.raises(ChangeFeedGap) as caught:
            graph.history.commit_changes(ids[2])
        assert caught.value.details == {"first_unreadable_commit_id": ids[2]}

    def test_the_history_of_an_entity_ends_where_it_was_cleaned_up(
        self, cleaned: tuple[Graph, list[str], str]
    ) -> None:
        graph, ids, _ = cleaned

        events = iter(graph.history.entity("Person", "ana"))
        with pytest.raises(HistoryReclaimed):
            list(events)
        with pytest.raises(HistoryReclaimed):
            graph.history.blame("Person", "ana")
        assert graph.history.commits(limit=1)[0].commit_id == ids[2]


class TestBaseline:
    def test_c25_a_baseline_and_what_follows_make_the_head(self, people: Graph) -> None:
        lines = b"".join(people.history.baseline()).splitlines(keepends=True)
        handshake = json.loads(lines[-1])["baseline"]
        assert b"".join(lines[:-1]) == b"".join(people.export())
        assert handshake["snapshot_commit_id"] == people.history.commits(limit=1)[0].commit_id

        made = age(people, 99)

        page = people.history.changes(cursor=handshake["resume_cursor"])
        assert [block.commit.commit_id for block in page.blocks] == [made]

    def test_c25_filters_restrict_the_records_and_bind_the_cursor(self, people: Graph) -> None:
        lines = b"".join(people.history.baseline(kinds=["node"], types=["Person"], ops=["delete"]))
        records = [json.loads(line) for line in lines.splitlines()]

        assert {record["type"] for record in records[:-1]} == {"Person"}
        cursor = records[-1]["baseline"]["resume_cursor"]
        age(people, 1)
        wanted: dict[str, Any] = {"kinds": ["node"], "types": ["Person"], "ops": ["delete"]}
        assert [len(b.changes) for b in people.history.changes(cursor=cursor, **wanted).blocks] == [
            0
        ]
        with pytest.raises(CursorRejected):
            people.history.changes(cursor=cursor)

    def test_c25_what_lands_while_it_streams_is_not_in_it(self, people: Graph) -> None:
        stream = people.history.baseline()
        chunks = [next(stream)]
        made = age(people, 1234)
        chunks += stream

        text = b"".join(chunks)
        assert b"1234" not in text
        cursor = json.loads(text.splitlines()[-1])["baseline"]["resume_cursor"]
        assert [b.commit.commit_id for b in people.history.changes(cursor=cursor).blocks] == [made]


def test_following_yields_commits_as_they_come_until_stopped(people: Graph) -> None:
    stop = threading.Event()
    pages = people.history.follow(stop=stop, interval_s=0.01)
    first = next(pages)
    assert first.blocks == []
    made = age(people, 1)

    assert [block.commit.commit_id for block in next(pages).blocks] == [made]
    stop.set()
    assert next(pages, None) is None


def test_the_wire_form_of_a_page(people: Graph) -> None:
    cursor = people.history.changes().cursor
    made = age(people, 31)
    parent = people.history.commits()[1].commit_id

    body = people.history.changes(cursor=cursor).to_json()

    (block,) = body["blocks"]
    assert set(body) == {"blocks", "cursor", "caught_up"}
    assert block["cause"].pop("authored_at") == people.history.commit(made).created_at_us
    assert block["cause"] == {
        "graph_commit_id": made,
        "parent_commit_id": parent,
        "authored_branch": "main",
    }
    (change,) = block["changes"]
    type_id = people.schema().nodes["Person"].type_id
    assert change == {
        "kind": "node",
        "type": {"id": type_id, "name": "Person"},
        "id": "ana",
        "op": "update",
        "before": {"properties": {"age": 30, "name": "ana"}},
        "after": {"properties": {"age": 31, "name": "ana"}},
    }
