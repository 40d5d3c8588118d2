"""The log: streaming, pages, filters, and all ancestors of a head."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from omnigraph import Graph
from omnigraph.errors import BranchNotFound, CommitNotFound, InvalidInput, TypeNotFound
from tests.graphs import repository


def write(graph: Graph, name: str, actor: str | None = None, branch: str = "main") -> None:
    with graph.write(branch, message=f"add {name}", actor=actor) as w:
        w.insert("Person", {"name": name})


def messages(graph: Graph, **wanted: object) -> list[str | None]:
    return [commit.message for commit in graph.history.commits(**wanted)]  # type: ignore[arg-type]


@pytest.fixture
def busy(people: Graph) -> Graph:
    """Init, people, ties, then five people by two actors and a city."""
    for number in range(5):
        write(people, f"p{number}", "eve" if number % 2 else "bob")
    with people.write(message="A Town") as w:
        w.insert("City", {"name": "Rome"})
    return people


def test_b11_newest_first_and_the_newest_few(busy: Graph) -> None:
    every = busy.history.commits()

    versions = [commit.manifest_version for commit in every]
    assert versions == sorted(versions, key=lambda v: -(v or 0))
    assert busy.history.commits(limit=3) == every[:3]
    assert busy.history.commits(limit=100) == every


def test_pages_go_on_after_a_commit(busy: Graph) -> None:
    every = busy.history.commits()
    pages = [busy.history.commits(limit=3)]
    while pages[-1]:
        pages.append(busy.history.commits(limit=3, after=pages[-1][-1].commit_id))

    assert [commit for page in pages for commit in page] == every


def test_filters(busy: Graph) -> None:
    assert messages(busy, actor="eve") == ["add p3", "add p1"]
    assert messages(busy, message="TOWN") == ["A Town"]
    assert messages(busy, types=["City"]) == ["A Town", "people", None]
    assert messages(busy, types=["City", "Knows"], limit=3) == ["A Town", "ties", "people"]
    assert messages(busy, actor="bob", message="p4") == ["add p4"]
    assert messages(busy, actor="nobody") == []


def test_filters_by_time(busy: Graph) -> None:
    every = busy.history.commits()
    middle = every[3]
    moment = datetime.fromtimestamp(middle.created_at_us / 1_000_000, UTC).isoformat()

    since, until = busy.history.commits(since=moment), busy.history.commits(until=moment)

    assert since + until == every
    assert middle in since


def test_commits_are_read_lazily(busy: Graph) -> None:
    view = repository(busy)
    counters = view.tables.counters
    state = view.main.current()
    state.timeline  # noqa: B018 - reads where everything is
    before = counters.scans

    newest = list(islice(state.timeline.iterate_commits(range(8)[::-1]), 2))

    assert [commit.message for commit in newest] == ["add p4", "add p3"]
    assert counters.scans == before + 1


def test_a_newer_timeline_reads_only_what_is_new(busy: Graph) -> None:
    view = repository(busy)
    old = view.main.current().timeline
    write(busy, "late")
    new = view.main.current().timeline

    assert new.commit_ids[:-1] == old.commit_ids
    assert new.commits.rows[:-1] == old.commits.rows
    assert new.types["node:City"] is old.types["node:City"]


def test_bad_input(busy: Graph) -> None:
    with pytest.raises(CommitNotFound):
        busy.history.commits(after="0" * 26)
    with pytest.raises(InvalidInput, match="not a time"):
        busy.history.commits(since="yesterday")
    with pytest.raises(TypeNotFound):
        busy.history.commits(types=["Persn"])
    with pytest.raises(BranchNotFound):
        busy.history.commits("nowhere")


def test_after_names_a_commit_of_this_branch(busy: Graph) -> None:
    busy.branches.create("dev")
    write(busy, "x", branch="dev")
    elsewhere = busy.history.commits("dev", limit=1)[0].commit_id

    with pytest.raises(CommitNotFound):
        busy.history.commits(after=elsewhere)


def test_a_filter_streams(busy: Graph) -> None:
    stream = busy.history.log(actor="bob")

    assert next(stream).message == "add p4"


def test_everything_that_led_to_a_branch_includes_what_was_merged(busy: Graph) -> None:
    busy.branches.create("dev")
    write(busy, "on dev", branch="dev")
    write(busy, "on main")
    busy.merge("dev", message="merged")

    found = [(commit.message, len(parents)) for commit, parents in busy.history.ancestry()]

    assert found[:3] == [("merged", 2), ("add on main", 1), ("add on dev", 1)]
    assert found[-1] == (None, 0)
    assert len({commit.commit_id for commit, _ in busy.history.ancestry()}) == len(found)


def test_commits_of_a_deleted_branch_stay_once_it_was_merged(busy: Graph) -> None:
    busy.branches.create("dev")
    write(busy, "on dev", branch="dev")
    busy.merge("dev", message="merged", delete_branch=True)

    found = [(commit.message, len(parents)) for commit, parents in busy.history.ancestry()]

    assert found[:2] == [("merged", 2), ("add on dev", 1)]
