"""The read operations: queries, schemas, entities, blobs, exports, and diffs of two states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked_items
from omnigraph.catalog.rows import MAIN
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.engine.engine import ReadOptions
from omnigraph.engine.plan.explain import Explanation
from omnigraph.engine.prepared_query import PreparedQuery
from omnigraph.engine.result import Result
from omnigraph.errors import EntityNotFound, InvalidInput
from omnigraph.lang.query.parameters import Parameters
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.local.context import GraphContext
from omnigraph.model.arguments import optional_instance
from omnigraph.model.requests import ChangeFilter, StateRef
from omnigraph.snapshots.blobs import Blob, BlobSelector, find_blob
from omnigraph.snapshots.diff import Diff, DiffFilter
from omnigraph.snapshots.export import export
from omnigraph.snapshots.images import images
from omnigraph.storage.lance.lookup import membership


class LocalReads:
    """The read operations of the local backend."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context
        self._repository = context.repository
        self._reader = context.reader

    def query(
        self,
        text: str,
        name: str | None,
        params: Parameters | None,
        state: StateRef,
        options: ReadOptions | None,
    ) -> Result:
        chosen = optional_instance("options", options, ReadOptions)
        return self._reader.query(text, name, params, state.branch, state.at, chosen)

    def prepare(
        self, text: str, name: str | None, state: StateRef, options: ReadOptions | None
    ) -> PreparedQuery:
        chosen = optional_instance("options", options, ReadOptions)
        return self._reader.prepared(text, name, state.branch, state.at, chosen)

    def explain(
        self, text: str, name: str | None, state: StateRef, options: ReadOptions | None
    ) -> Explanation:
        chosen = optional_instance("options", options, ReadOptions)
        return self._reader.explain(text, name, state.branch, state.at, chosen)

    def snapshot(self, state: StateRef) -> SnapshotPins:
        if state.version is None:
            return self._reader.pin(state.branch, state.at)
        if state.at is not None:
            raise InvalidInput(
                "`version` and `at` exclude each other", remedy="Pass only one of them."
            )
        with self._context.reading(MAIN if state.branch is None else state.branch) as branch:
            return self._repository.snapshot_at_version(branch, state.version)

    def schema(self, state: StateRef) -> AcceptedSchema:
        snapshot = self.snapshot(state)
        with self._context.checking_deletion(snapshot.branch):
            return self._reader.schema(snapshot)

    def entity(self, type_key: str, id: str, state: StateRef) -> dict[str, Any]:
        snapshot = self.snapshot(state)
        with self._context.checking_deletion(snapshot.branch):
            table = self._repository.tables.open(snapshot.pin(type_key).ref)
            found = table.scan(filter=membership("id", pa.array([id])), with_row_id=True)
            if not found.num_rows:
                raise EntityNotFound(
                    f"there is no {type_key.partition(':')[2]} with id {id!r}",
                    details={"type_key": type_key, "id": id},
                )
            return images(self._reader.schema(snapshot).type(type_key), table, found)[0]

    def blob(self, entity: str, type_name: str, id: str, property: str, state: StateRef) -> Blob:
        snapshot = self.snapshot(state)
        selector = BlobSelector(entity, type_name, id, property)
        with self._context.checking_deletion(snapshot.branch):
            schema = self._reader.schema(snapshot)
            return find_blob(self._repository, snapshot, schema, selector)

    def export(self, state: StateRef, types: Sequence[str] | None) -> Iterator[bytes]:
        snapshot = self.snapshot(state)
        with self._context.checking_deletion(snapshot.branch):
            schema = self._reader.schema(snapshot)
        chunks = export(self._repository, snapshot, schema, types)
        return deletion_checked_items(self._repository, snapshot.branch, chunks)

    def diff(self, old: str, new: str, filter: ChangeFilter) -> Diff:
        chosen = DiffFilter(frozenset(filter.kinds), frozenset(filter.types), frozenset(filter.ops))
        return Diff(self._repository, self._reader.state(old), self._reader.state(new), chosen)
