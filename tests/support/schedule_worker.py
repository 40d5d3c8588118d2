"""One process of a random schedule: writes or reads lists until it is killed.

    python -m tests.support.schedule_worker ROLE URI LEDGER NUMBER SEED STOP_FILE

A writer reads the lists of the types it is about to change at one snapshot, appends to some of
them, and commits on exactly what it read. A reader reads the whole graph at one snapshot. Every
step is in the process's ledger. The process ends by itself when the stop file exists.
"""

from __future__ import annotations

import logging
import random
import sys
import traceback
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints.image import TypeImage
from omnigraph.errors import Conflict, OmnigraphError, OutcomeUnknown, RecoveryRequired
from omnigraph.maintenance.upkeep import run_upkeep
from omnigraph.prepare.preparer import Preparer
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.prepared import WriteInfo
from tests.support.history import Append, Outcome
from tests.support.internals import repository_of, transaction_of
from tests.support.ledger import Ledger

TYPES = ("Red", "Green", "Blue", "White")
KEYS_PER_TYPE = 8
SCHEMA = "\n".join(f"node {name} {{ name: String @key\n values: [I64] }}" for name in TYPES)
OPERATIONS_MAX = 1 << 20  # per process; its numbers are below those of the next process
HOME_SHARE = 0.6  # of a writer's operations, on one type of its own: disjoint writers must not wait
WHOLE_SHARE = 0.1  # of a writer's operations, of everything, on the head it read
Lists = dict[str, tuple[int, ...]]
Values = dict[str, list[int]]


def create(uri: str) -> None:
    """The graph that a schedule starts from: every list is empty."""
    graph = omnigraph.init(uri, SCHEMA)
    with graph.write(message="empty lists") as w:
        for type_name in TYPES:
            for n in range(KEYS_PER_TYPE):
                w.insert(type_name, {"name": f"{type_name}{n}", "values": []})


def read_lists(repository: Repository, snapshot: SnapshotPins, types: tuple[str, ...]) -> Lists:
    """The lists of some types at a snapshot."""
    lists: Lists = {}
    for type_name in types:
        table = repository.tables.open(snapshot.pin(f"node:{type_name}").ref)
        for row in table.scan(["id", "values"]).to_pylist():
            lists[row["id"]] = tuple(row["values"])
    return lists


class Writer:
    """Appends to lists, on exactly what it read or not at all."""

    def __init__(self, uri: str, ledger: Ledger, number: int, rng: random.Random) -> None:
        self._graph = omnigraph.open(uri)  # resolves what dead writers left
        self._repository = repository_of(self._graph)
        self._transaction = transaction_of(self._graph)
        self._ledger = ledger
        self._home = TYPES[number % len(TYPES)]
        self._actor = f"p{number}"
        self._rng = rng

    def step(self, number: int) -> None:
        whole = self._rng.random() < WHOLE_SHARE
        types = TYPES if whole else self._chosen_types()
        keys = [f"{name}{self._rng.randrange(KEYS_PER_TYPE)}" for name in types]
        appends = [Append(key, number * 10 + n) for n, key in enumerate(keys)]
        self._ledger.begin(number, appends)
        branch = self._repository.branch("main")
        self._transaction.enter(branch)
        snapshot = self._repository.snapshot(branch)
        lists = read_lists(self._repository, snapshot, types)
        try:
            if whole:
                commit_id = self._write_on_head(number, snapshot.commit_id, lists, appends)
            else:
                commit_id = self._write_on_types(number, snapshot, lists, appends)
        except OmnigraphError as error:
            refused = isinstance(error, Conflict | RecoveryRequired)
            outcome = Outcome.FAILED if refused else Outcome.UNKNOWN
            self._ledger.end(number, outcome, at=snapshot.commit_id, read=lists, error=error.code)
            if refused or isinstance(error, OutcomeUnknown):
                return
            raise
        self._ledger.end(number, Outcome.OK, at=snapshot.commit_id, read=lists, commit=commit_id)
        run_upkeep(
            self._repository, self._transaction, branch, {f"node:{name}": 0 for name in types}
        )

    def _chosen_types(self) -> tuple[str, ...]:
        if self._rng.random() < HOME_SHARE:
            return (self._home,)
        return tuple(self._rng.sample(TYPES, self._rng.randrange(1, 3)))

    def _write_on_types(
        self, number: int, snapshot: SnapshotPins, lists: Lists, appends: list[Append]
    ) -> str:
        """Rely on the versions of the types that were read, as a mutation does."""
        state = self._repository.manifest(snapshot.branch).warm()
        schema = load_schema(state, snapshot.schema_hash)
        rows: dict[str, pa.Table] = {}
        for append in appends:
            key = f"node:{_type_of(append.key)}"
            columns = self._repository.tables.open(snapshot.pin(key).ref).schema
            rows[key] = _row(columns, append, lists)
        info = WriteInfo("write", self._actor, str(number))
        preparer = Preparer(self._repository, snapshot, schema)
        image = {key: TypeImage(table) for key, table in rows.items()}
        commit = self._transaction.commit(preparer.prepare(image, info))
        assert commit is not None
        return commit.commit_id

    def _write_on_head(self, number: int, head: str, lists: Lists, appends: list[Append]) -> str:
        """Rely on nothing at all having changed since the read, in one of the ways to write."""
        values = {append.key: [*lists[append.key], append.value] for append in appends}
        write = self._rng.choice((self._by_batch, self._by_mutation, self._by_load))
        commit = write(
            values, {"message": str(number), "actor": self._actor, "expected_head": head}
        )
        assert commit is not None
        return commit.commit_id

    def _by_batch(self, values: Values, options: dict[str, Any]) -> Commit | None:
        with self._graph.write(**options) as batch:
            for key, new in values.items():
                batch.update(_type_of(key), key, {"values": new})
        return batch.result

    def _by_mutation(self, values: Values, options: dict[str, Any]) -> Commit | None:
        updates = (
            f'update {_type_of(key)} set {{ values: ${key.lower()} }} where name = "{key}"'
            for key in values
        )
        declared = ", ".join(f"${key.lower()}: [I64]" for key in values)
        text = f"query q({declared}) {{ {' '.join(updates)} }}"
        params = {key.lower(): new for key, new in values.items()}
        return self._graph.mutate(text, params=params, **options).commit

    def _by_load(self, values: Values, options: dict[str, Any]) -> Commit | None:
        records = [
            {"type": _type_of(key), "data": {"name": key, "values": new}}
            for key, new in values.items()
        ]
        return self._graph.load(records, mode="merge", **options).commit


def _type_of(key: str) -> str:
    return key.rstrip("0123456789")


def _row(columns: pa.Schema, append: Append, lists: Lists) -> pa.Table:
    values = [*lists[append.key], append.value]
    row = {"id": append.key, "name": append.key, "values": values}
    return pa.Table.from_pylist([row], schema=columns)


class Reader:
    """Reads the whole graph, one snapshot at a time, through one read-only handle."""

    def __init__(self, uri: str, ledger: Ledger) -> None:
        self._graph = omnigraph.open(uri, read_only=True)
        self._repository = Repository.open(parse_location(uri))
        self._ledger = ledger

    def step(self, number: int) -> None:
        self._ledger.begin(number)
        snapshot = self._graph.snapshot()
        lists = read_lists(self._repository, snapshot, TYPES)
        self._ledger.end(number, Outcome.OK, at=snapshot.commit_id, read=lists)


def main(arguments: list[str]) -> int:
    role, uri, ledger_path, number, seed, stop = arguments
    # To stderr, which the schedule keeps.
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    ledger = Ledger(Path(ledger_path), f"{role}{number}")
    first = (int(number) + 1) * OPERATIONS_MAX
    try:
        worker: Writer | Reader
        if role == "writer":
            worker = Writer(uri, ledger, int(number), random.Random(f"{seed}/{number}"))
        else:
            worker = Reader(uri, ledger)
        for step in count(first):
            if Path(stop).exists():
                return 0
            worker.step(step)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
