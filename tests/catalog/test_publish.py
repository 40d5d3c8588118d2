"""The publish: atomic, conflict-checked, linear, flat, and honest about unclear outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import many_types, people_graph, repository

import omnigraph
from omnigraph.catalog import publisher
from omnigraph.catalog.history import commits as history
from omnigraph.catalog.publication import Publication, Requirements
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, Commit, Row, RowKind
from omnigraph.catalog.state import current_fragments, history_fragments, load_state
from omnigraph.errors import (
    Contention,
    OutcomeUnknown,
    OwnershipLost,
    PreconditionFailed,
    ReadSetConflict,
    StorageFailure,
    VersionConflict,
)
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.errors import AmbiguousOutcome, CommitRefused
from omnigraph.storage.lance.tables import TableRef


def publication(requirements: Requirements | None = None, **more: Any) -> Publication:
    """An empty commit, which is all the publisher needs to show how it behaves."""
    commit = Commit(new_ulid(), MAIN, "test", created_at_us=1)
    return Publication(
        commit.commit_id, MAIN, requirements or Requirements(), commit=commit, **more
    )


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return repository(people_graph(tmp_path / "g"))


def test_P_1_one_manifest_version_carries_tables_commit_and_head(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    before = repository(graph).main.current().version
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
        w.insert("City", {"name": "Rome"})
    after = repository(graph).main.current()
    assert after.version == before + 1
    assert after.head.commit_id == graph.history.commits(limit=1)[0].commit_id
    assert (after.pins["node:Person"].rows, after.pins["node:City"].rows) == (3, 2)


def test_P_2_a_wrong_expected_version_is_a_typed_conflict(repo: Repository) -> None:
    pin = repo.main.current().pins["node:Person"]
    with pytest.raises(VersionConflict) as conflict:
        repo.main.publish(publication(Requirements(tables={pin.key: pin.ref.at(99)})))
    assert conflict.value.details == {
        "entity_kind": "node",
        "type_name": "Person",
        "expected_published_dataset_version": 99,
        "actual_published_dataset_version": pin.ref.version,
    }


@pytest.mark.parametrize(
    ("requirements", "error"),
    [
        (Requirements(tables={"node:Nobody": TableRef("x", None, 1)}), VersionConflict),
        (Requirements(schema_hash="other"), ReadSetConflict),
        (Requirements(head="other"), PreconditionFailed),
        (Requirements(delete_epochs={"node:Person": 5}), ReadSetConflict),
        (Requirements(insert_epochs={"edge:Knows": 7}), ReadSetConflict),
        (Requirements(branches=("branch:ghost",)), ReadSetConflict),
    ],
)
def test_P_3_every_unmet_requirement_is_refused_without_effect(
    repo: Repository, requirements: Requirements, error: type[Exception]
) -> None:
    before = repo.main.current().version
    with pytest.raises(error):
        repo.main.publish(publication(requirements))
    assert repo.main.current().version == before


def test_P_3_publishers_with_stale_states_form_one_chain(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    handles = [repository(graph) for _ in range(4)]
    for handle in handles:
        handle.main.current()
    for handle in handles * 3:
        handle.main.publish(publication())
    commits = graph.history.commits()
    assert len(commits) == 3 + 12
    assert [c.parent for c in commits[:-1]] == [c.commit_id for c in commits[1:]]
    assert commits[-1].parent is None


def test_P_3_stale_facts_are_looked_at_again_before_a_refusal(tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    stale = repository(graph)
    stale.main.current()
    with graph.write() as w:
        w.insert("Person", {"name": "cy"})
    now = repository(graph).main.current().pins["node:Person"]
    published = stale.main.publish(publication(Requirements(tables={now.key: now.ref})))
    assert published.state.pins["node:Person"].rows == 3


def test_P_3_an_exhausted_budget_is_retryable_contention(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    retry = replace(publisher.PUBLISH_RETRY, deadline_s=0.0)
    monkeypatch.setattr(publisher, "PUBLISH_RETRY", retry)
    monkeypatch.setattr(repo.tables, "commit_rebasing", _raiser(CommitRefused("busy")))
    with pytest.raises(Contention) as contention:
        repo.main.publish(publication())
    assert contention.value.retryable
    assert contention.value.details["attempts"] == publisher.PUBLISH_RETRY.attempts_min


def _raiser(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def test_P_6_a_lost_answer_is_looked_up_and_not_repeated(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = repo.tables.commit_rebasing

    def commit_then_lose_the_answer(staged: Any) -> Any:
        real(staged)
        raise AmbiguousOutcome("timed out after the request was sent")

    before = repo.main.current().version
    monkeypatch.setattr(repo.tables, "commit_rebasing", commit_then_lose_the_answer)
    wanted = publication()
    published = repo.main.publish(wanted)
    assert published.commit is not None
    assert published.commit.commit_id == wanted.operation_id
    assert repo.main.current().version == before + 1


def test_P_6_a_request_that_never_arrived_is_sent_again(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = repo.tables.commit_rebasing, []

    def lose_the_first_request(staged: Any) -> Any:
        calls.append(staged)
        if len(calls) == 1:
            raise AmbiguousOutcome("timed out before the request was sent")
        return real(staged)

    before = repo.main.current().version
    monkeypatch.setattr(repo.tables, "commit_rebasing", lose_the_first_request)
    repo.main.publish(publication())
    assert (len(calls), repo.main.current().version) == (2, before + 1)


def test_P_6_a_request_that_arrives_late_is_not_sent_again(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = repo.tables.commit_rebasing, []

    def delay_the_first_request(staged: Any) -> Any:
        if not late:
            late.append(staged)
            raise AmbiguousOutcome("timed out on its way")
        return real(staged)

    def let_it_arrive(*_: object) -> None:
        real(late[0])

    before = repo.main.current().version
    monkeypatch.setattr(repo.tables, "commit_rebasing", delay_the_first_request)
    retry = replace(publisher.PUBLISH_RETRY, sleep=let_it_arrive)
    monkeypatch.setattr(publisher, "PUBLISH_RETRY", retry)
    wanted = publication()
    published = repo.main.publish(wanted)
    assert published.commit is not None
    assert published.commit.commit_id == wanted.operation_id
    assert repo.main.current().version == before + 1


def test_P_6_a_refusal_by_ones_own_first_request_counts_as_success(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = repo.tables.commit_rebasing

    def collide_with_oneself(staged: Any) -> Any:
        real(staged)
        raise CommitRefused("somebody was faster: the same client, with its first try")

    before = repo.main.current().version
    monkeypatch.setattr(repo.tables, "commit_rebasing", collide_with_oneself)
    assert repo.main.publish(publication()).state.version == before + 1
    assert repo.main.current().version == before + 1


def test_P_6_when_the_look_up_fails_too_the_outcome_is_unknown(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.main.current()
    monkeypatch.setattr(repo.tables, "commit_rebasing", _raiser(AmbiguousOutcome("timed out")))
    monkeypatch.setattr(repo.tables, "newest_from", _raiser(StorageFailure("gone")))
    wanted = publication()
    with pytest.raises(OutcomeUnknown) as unknown:
        repo.main.publish(wanted)
    assert unknown.value.details["commit_id"] == wanted.operation_id
    assert not unknown.value.retryable


def test_R_10_a_marked_operation_cannot_be_published(repo: Repository) -> None:
    wanted = publication()
    mark = Row(f"abandoned:{wanted.operation_id}", RowKind.ABANDONED)
    repo.main.publish(Publication(new_ulid(), MAIN, put=(mark,)))
    with pytest.raises(OwnershipLost):
        repo.main.publish(wanted)


def test_R_10_an_operation_that_others_published_reports_success(repo: Repository) -> None:
    pin = repo.main.current().pins["node:Person"]
    wanted = publication(
        Requirements(tables={pin.key: pin.ref}, head=repo.main.warm().head.commit_id)
    )
    first = repo.main.publish(wanted)
    again = repo.main.publish(wanted)  # its requirement on the head no longer holds, because of it
    assert again.commit == first.commit
    assert len(history.list_commits(repo.main.current())) == 4


def test_P_5_folding_keeps_everything_and_leaves_few_fragments(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", many_types(3))
    view = repository(graph)
    ids = []
    for _ in range(130):
        published = view.main.publish(publication())
        assert published.commit is not None
        ids.append(published.commit.commit_id)
    state = view.main.current()
    assert len(current_fragments(state.table)) <= 50
    assert 1 <= len(history_fragments(state.table)) <= publisher.HISTORY_FRAGMENTS_MAX
    assert [c.commit_id for c in history.list_commits(state)][:-1] == ids[::-1]
    versions = [c.manifest_version for c in history.list_commits(state)]
    assert versions == list(range(131, 0, -1))  # the version of creation survives being rewritten
    cold = load_state(view.tables.open(state.ref))
    assert {k: s.row for k, s in cold.current.items()} == {
        k: s.row for k, s in state.current.items()
    }
    assert {k: s.address for k, s in cold.current.items()} == {
        k: s.address for k, s in state.current.items()
    }


def test_D_7_history_fragments_are_not_read_to_find_current_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(tmp_path / "g", many_types(1))
    view = repository(graph)
    for _ in range(60):
        view.main.publish(publication())
    table = view.main.current().table
    past = set(history_fragments(table))
    read: list[int] = []
    scanner = table.dataset.scanner

    def recording(**arguments: Any) -> Any:
        read.extend(f.fragment_id for f in arguments["fragments"])
        return scanner(**arguments)

    monkeypatch.setattr(table.dataset, "scanner", recording)
    load_state(table)
    assert past
    assert read
    assert not past & set(read)
