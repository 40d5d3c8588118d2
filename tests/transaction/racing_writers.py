"""The processes of ``test_concurrency.py``. A spawned process imports this module by name.

Raw writers prepare by hand and never retry, so that every outcome of a race is seen.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import omnigraph
from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.repository import Repository
from omnigraph.errors import OmnigraphError
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.tables import OPERATION_PROPERTY, PinnedTable, StagedWrite
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

WAIT_S = 600


class Racer:
    """One process's place in a race: where everybody waits for everybody."""

    def __init__(self, barrier: Any, number: int, environment: Mapping[str, str]) -> None:
        self._barrier = barrier
        self.number = number
        self._environment = dict(environment)

    def enter(self) -> None:
        os.environ.update(self._environment)

    def ready(self) -> None:
        self._barrier.wait(WAIT_S)


def warm_up(barrier: Any) -> int:
    """Load everything once, in every process of the pool."""
    import lance.optimize  # noqa: F401

    barrier.wait(WAIT_S)
    return os.getpid()


# -- through the public API -----------------------------------------------------------------------


def insert_into_own_type(racer: Racer, uri: str, commits: int) -> list[str]:
    """One-row commits to this process's own type; returns the messages of the commits made."""
    racer.enter()
    graph = omnigraph.open(uri)
    racer.ready()
    messages = []
    for number in range(commits):
        message = f"process {racer.number} commit {number}"
        with graph.write(message=message) as w:
            w.insert(f"T{racer.number}", {"name": f"row {number}", "n": number})
        messages.append(message)
    return messages


def insert_edge_or_delete_end(racer: Racer, uri: str, rounds: int) -> list[str]:
    """Round by round, one process points an edge at a node while the other deletes it."""
    racer.enter()
    graph = omnigraph.open(uri)
    outcomes = []
    for number in range(rounds):
        racer.ready()
        try:
            with graph.write() as w:
                if racer.number == 0:
                    w.insert_edge("Knows", "anchor", f"end {number}")
                else:
                    w.delete("Person", f"end {number}")
            outcomes.append("ok")
        except OmnigraphError as error:
            outcomes.append(error.code)
    return outcomes


def initialise(racer: Racer, uris: Sequence[str], schema: str) -> list[str]:
    """Try to create a graph at each place; the actor says which process it was."""
    racer.enter()
    outcomes = []
    for uri in uris:
        racer.ready()
        try:
            omnigraph.init(uri, schema, actor=str(racer.number))
            outcomes.append("ok")
        except OmnigraphError as error:
            outcomes.append(error.code)
    return outcomes


# -- by hand, without retry -----------------------------------------------------------------------

Stage = Callable[[PinnedTable, dict[str, str], int], StagedWrite]


def race_on_one_type(
    racer: Racer, uri: str, type_key: str, stage: str, rounds: int
) -> dict[str, Any]:
    """Round by round, everybody stages on the same version and then commits."""
    racer.enter()
    repository = Repository.open(parse_location(uri))
    transaction = WriteTransaction(repository)
    won, lost = [], Counter[str]()
    for number in range(rounds):
        racer.ready()  # nobody commits to the last round any more
        snapshot = repository.snapshot(MAIN_BRANCH)
        pin = snapshot.pin(type_key)
        operation_id = new_ulid()
        table = repository.tables.open(pin.ref)
        staged = STAGES[stage](
            table, {OPERATION_PROPERTY: operation_id}, number * 100 + racer.number
        )
        prepared = PreparedWrite(
            operation_id, snapshot, WriteInfo("race"), (PreparedTable(pin, staged),)
        )
        racer.ready()  # everybody has staged
        try:
            commit = transaction.commit(prepared)
            assert commit is not None
            won.append((number, commit.commit_id, pin.ref.version))
        except OmnigraphError as error:
            lost[error.code] += 1
    return {"won": won, "lost": dict(lost)}


def _insert(table: PinnedTable, properties: dict[str, str], number: int) -> StagedWrite:
    return staging.stage_insert(table, _rows(table, [f"row {number}"]), properties, type_key="T")


def _same_key(table: PinnedTable, properties: dict[str, str], number: int) -> StagedWrite:
    """Everybody adds the same new key."""
    ids = [f"key {number // 100}"]
    return staging.stage_upsert(table, _rows(table, ids), properties, type_key="T")


def _same_key_and_own_row(
    table: PinnedTable, properties: dict[str, str], number: int
) -> StagedWrite:
    """Everybody adds the same new key and changes a row of a fragment of their own."""
    ids = [f"key {number // 100}", f"own {number % 100}"]
    return staging.stage_upsert(table, _rows(table, ids), properties, type_key="T")


STAGES: dict[str, Stage] = {
    "insert": _insert,
    "same key": _same_key,
    "same key and own row": _same_key_and_own_row,
}


def _rows(table: PinnedTable, ids: list[str]) -> Any:
    import pyarrow as pa

    values = [{"id": i, "name": i, "n": 0} for i in ids]
    return pa.Table.from_pylist(values, schema=table.schema)
