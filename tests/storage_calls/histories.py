"""Graphs with a given number of types and commits, built on local disk and put into the store.

Every graph is left at the same point of its upkeep cycle: eleven fragments with current rows in the
manifest and ten fragments in the type that is written to ("1,000" commits are therefore up to
sixty more). Between two folds a cold reader finds one small fragment per commit, so points of
different cycles would not compare.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.graphs import many_types

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.publication import Publication, Requirements
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, Commit, TablePin
from omnigraph.catalog.state import current_fragments
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.tables import OPERATION_PROPERTY, PinnedTable
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.prepared import PreparedTable

TYPES = (1, 20, 100)
COMMITS = (10, 1_000)
AFTER_UPKEEP = 9  # the fold and the compaction leave as much as one commit does
WRITTEN = "T0"
# Not what upkeep uses, or compaction and the fold of the manifest would always fall together.
COMPACTED_FROM = 40
FOLDED_WITHIN = 1_000  # a fold comes around every fifty publishes


def build(
    directory: Path, types: int, lengths: Sequence[int]
) -> Iterator[tuple[int, Path, tuple[str, ...]]]:
    """Yields commits, where, and the newest rows, for each length of history (in order)."""
    place = directory / "growing"
    writer = _Writer(omnigraph.init(place, many_types(types)))
    for commits in lengths:
        writer.insert()
        if commits > AFTER_UPKEEP + 1:
            while writer.commits < commits or not writer.just_folded():
                assert writer.commits < commits + FOLDED_WITHIN, "the manifest is never folded"
                writer.insert()
            writer.compact()
        newest = tuple(writer.insert() for _ in range(AFTER_UPKEEP))
        copy = directory / f"{types} types {commits} commits"
        shutil.copytree(place, copy)
        yield commits, copy, newest


class _Writer:
    """Commits one row at a time to the type that is written to.

    Tables move and the manifest is published as in every write, but without a recovery record:
    building a thousand commits is not what is measured.
    """

    def __init__(self, graph: Graph) -> None:
        self.commits = 0
        self._repository = Repository.open(parse_location(graph.uri))

    def insert(self) -> str:
        """One commit; returns the new row's id."""
        import pyarrow as pa

        name, operation_id = f"row {self.commits}", new_ulid()
        values = [{"id": name, "name": name, "n": 0}]
        pin, table = self._look()
        staged = staging.stage_insert(
            table,
            pa.Table.from_pylist(values, schema=table.schema),
            {OPERATION_PROPERTY: operation_id},
            type_key=pin.key,
        )
        commit = Commit(operation_id, MAIN, "write", self.commits, operation_id=operation_id)
        self._publish(operation_id, PreparedTable(pin, staged), commit)
        self.commits += 1
        if len(table.fragments) >= COMPACTED_FROM:
            self.compact()
        return name

    def compact(self) -> None:
        pin, table = self._look()
        operation_id = new_ulid()
        staged = stage_compaction(table, {OPERATION_PROPERTY: operation_id})
        if staged is not None:
            self._publish(operation_id, PreparedTable(pin, staged), None)

    def just_folded(self) -> bool:
        return len(current_fragments(self._repository.main.warm().table)) == 1

    def _look(self) -> tuple[TablePin, PinnedTable]:
        pin = self._repository.main.warm().pins[f"node:{WRITTEN}"]
        return pin, self._repository.tables.open(pin.ref)

    def _publish(self, operation_id: str, table: PreparedTable, commit: Commit | None) -> None:
        self._repository.tables.commit(table.staged)
        change = table.planned().change(MAIN_BRANCH.incarnation)
        requirements = Requirements(tables={table.pin.key: table.pin.ref})
        self._repository.main.publish(
            Publication(operation_id, MAIN, requirements, (change,), commit)
        )
