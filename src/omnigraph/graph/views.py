"""Views of a graph: one branch, or one immutable state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.engine.engine import ReadOptions
    from omnigraph.engine.plan.explain import Explanation
    from omnigraph.engine.prepared_query import PreparedQuery
    from omnigraph.engine.result import Result
    from omnigraph.graph.graph import Graph
    from omnigraph.ingest.load import LoadMode, LoadResult, LoadSource, Progress
    from omnigraph.ingest.sources import LoadFormat
    from omnigraph.lang.query.parameters import Parameters
    from omnigraph.lang.schema import AcceptedSchema
    from omnigraph.mutation.batch import Batch
    from omnigraph.mutation.mutation import MutationResult
    from omnigraph.snapshots.blobs import Blob


class BranchView:
    """One branch of a graph, as ``graph.branch(name)``. Reads see its newest state.

    Attributes:
        name: The branch.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self.name = name

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Parameters | None = None,
        options: ReadOptions | None = None,
    ) -> Result:
        """Run a read query on the branch; see ``Graph.query``.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            params: Values of the query's parameters.
            options: Limits and other settings of the run.

        Returns:
            The rows.

        Example:
            >>> text = "query q() { match { $c: City } return { $c.name } order { $c.name } }"
            >>> graph.branch("dev").query(text).rows()
            [{'c.name': 'Oslo'}, {'c.name': 'Rome'}]
        """
        return self._graph.query(text, name, params, self.name, None, options)

    def prepare(
        self, text: str, name: str | None = None, options: ReadOptions | None = None
    ) -> PreparedQuery:
        """A read query of the branch to run many times; see ``Graph.prepare``.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            options: Limits and other settings of every run.

        Returns:
            The query.

        Example:
            >>> text = "query q($n: String) { match { $c: City { name: $n } } return { $c.name } }"
            >>> graph.branch("dev").prepare(text).query({"n": "Oslo"}).rows()
            [{'c.name': 'Oslo'}]
        """
        return self._graph.prepare(text, name, self.name, None, options)

    def explain(
        self, text: str, name: str | None = None, options: ReadOptions | None = None
    ) -> Explanation:
        """The plan of a read query on the branch; see ``Graph.explain``.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            options: Settings of the run that is planned.

        Returns:
            The plan.

        Example:
            >>> text = "query q() { match { $c: City } return { $c.name } }"
            >>> len(graph.branch("dev").explain(text).lines()) > 0
            True
        """
        return self._graph.explain(text, name, self.name, None, options)

    def schema(self) -> AcceptedSchema:
        """The schema of the branch.

        Returns:
            The schema.

        Example:
            >>> sorted(graph.branch("dev").schema().nodes)
            ['City', 'Person']
        """
        return self._graph.schema(self.name)

    def snapshot(self) -> SnapshotPins:
        """The newest state of the branch.

        Returns:
            The snapshot.

        Example:
            >>> graph.branch("dev").snapshot().branch.name
            'dev'
        """
        return self._graph.snapshot(self.name)

    def entity(self, type_key: str, id: str) -> dict[str, Any]:
        """One entity of the branch; see ``Graph.entity``.

        Args:
            type_key: The type, such as ``node:Person``.
            id: The id of the entity.

        Returns:
            Its properties; of an edge, also its ends.

        Example:
            >>> graph.branch("dev").entity("node:City", "Rome")["name"]
            'Rome'
        """
        return self._graph.entity(type_key, id, self.name)

    def blob(self, entity: str, type_name: str, id: str, property: str) -> Blob:
        """One blob of the branch; see ``Graph.blob``.

        Args:
            entity: ``node`` or ``edge``.
            type_name: The type of the entity.
            id: The id of the entity.
            property: The blob property.

        Returns:
            The blob.

        Example:
            >>> graph.branch("dev").blob("node", "City", "Oslo", "photo").size  # doctest: +SKIP
            1024
        """
        return self._graph.blob(entity, type_name, id, property, branch=self.name)

    def export(self, types: Sequence[str] | None = None) -> Iterator[bytes]:
        """The branch as NDJSON; see ``Graph.export``.

        Args:
            types: Only these types.

        Returns:
            An iterator over chunks of bytes.

        Example:
            >>> b"".join(graph.branch("dev").export(["City"])).count(b"City")
            2
        """
        return self._graph.export(self.name, types=types)

    def mutate(
        self,
        query: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a write query on the branch; see ``Graph.mutate``.

        Args:
            query: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            params: Values of the query's parameters.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The write fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            How many entities were changed, and the commit.

        Example:
            >>> text = 'query q() { delete City where name = "Rome" }'
            >>> graph.branch("dev").mutate(text).affected_nodes
            1
        """
        return self._graph.mutate(
            query,
            name,
            params,
            self.name,
            message=message,
            actor=actor,
            metadata=metadata,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
        )

    def write(
        self,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> AbstractContextManager[Batch]:
        """Collect changes in a ``with`` block, for one commit on the branch; see ``Graph.write``.

        Args:
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The write fails if this is not the head of the branch.
            idempotency_key: A repeated block with this key writes nothing.

        Returns:
            A context manager that gives the batch.

        Example:
            >>> with graph.branch("dev").write() as batch:
            ...     batch.delete("City", "Rome")
        """
        return self._graph.write(
            self.name,
            message=message,
            actor=actor,
            metadata=metadata,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
        )

    def load(
        self,
        source: LoadSource,
        *,
        mode: LoadMode,
        type: str | None = None,
        columns: Mapping[str, str] | None = None,
        format: LoadFormat | None = None,
        strict: bool = True,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        progress: Callable[[Progress], None] | None = None,
        upkeep: bool = True,
        engine: str | None = None,
        quarantine: str | os.PathLike[str] | None = None,
    ) -> LoadResult:
        """Load records into the branch; see ``Graph.load``.

        Args:
            source: A path, directory, glob or URI, bytes, a table, an iterable of records, or a
                mapping of type names to any of these.
            mode: ``append``, ``upsert``, ``merge`` or ``overwrite``.
            type: The type of the rows of a table.
            columns: What the columns of a table are.
            format: ``ndjson``, ``parquet`` or ``csv``.
            strict: Refuse unknown properties.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The load fails if this is not the head of the branch.
            idempotency_key: A repeated load with this key returns the result of the first.
            progress: Called during the load.
            upkeep: Compact and index afterwards.
            engine: ``auto``, ``spark`` or ``local``.
            quarantine: A new file for bad records. Needs Spark.

        Returns:
            Records per type, and the commit.

        Example:
            >>> records = [{"type": "City", "data": {"name": "Lima"}}]
            >>> graph.branch("dev").load(records, mode="append").branch
            'dev'
        """
        return self._graph.load(
            source,
            mode=mode,
            branch=self.name,
            type=type,
            columns=columns,
            format=format,
            strict=strict,
            message=message,
            actor=actor,
            metadata=metadata,
            expected_head=expected_head,
            idempotency_key=idempotency_key,
            progress=progress,
            upkeep=upkeep,
            engine=engine,
            quarantine=quarantine,
        )

    def __repr__(self) -> str:
        return f"<BranchView {self.name!r} of {self._graph.uri!r}>"


class SnapshotView:
    """One state of a graph, as ``graph.at(ref)``. It does not change while the view exists.

    Attributes:
        commit_id: The commit that made the state.
    """

    def __init__(self, graph: Graph, commit_id: str) -> None:
        self._graph = graph
        self.commit_id = commit_id

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Parameters | None = None,
        options: ReadOptions | None = None,
    ) -> Result:
        """Run a read query on the state; see ``Graph.query``.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            params: Values of the query's parameters.
            options: Limits and other settings of the run.

        Returns:
            The rows.

        Example:
            >>> text = "query q() { match { $c: City } return { $c.name } }"
            >>> graph.at("v1").query(text).rows()
            [{'c.name': 'Oslo'}]
        """
        return self._graph.query(text, name, params, None, self.commit_id, options)

    def prepare(
        self, text: str, name: str | None = None, options: ReadOptions | None = None
    ) -> PreparedQuery:
        """A read query of the state to run many times; see ``Graph.prepare``.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            options: Limits and other settings of every run.

        Returns:
            The query.

        Example:
            >>> text = "query q($n: String) { match { $c: City { name: $n } } return { $c.name } }"
            >>> graph.at("v1").prepare(text).query({"n": "Oslo"}).rows()
            [{'c.name': 'Oslo'}]
        """
        return self._graph.prepare(text, name, None, self.commit_id, options)

    def explain(
        self, text: str, name: str | None = None, options: ReadOptions | None = None
    ) -> Explanation:
        """The plan of a read query on the state; see ``Graph.explain``.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            options: Settings of the run that is planned.

        Returns:
            The plan.

        Example:
            >>> text = "query q() { match { $c: City } return { $c.name } }"
            >>> len(graph.at("v1").explain(text).lines()) > 0
            True
        """
        return self._graph.explain(text, name, None, self.commit_id, options)

    def schema(self) -> AcceptedSchema:
        """The schema of the state.

        Returns:
            The schema.

        Example:
            >>> sorted(graph.at("v1").schema().nodes)
            ['City', 'Person']
        """
        return self._graph.schema(at=self.commit_id)

    def entity(self, type_key: str, id: str) -> dict[str, Any]:
        """One entity of the state; see ``Graph.entity``.

        Args:
            type_key: The type, such as ``node:Person``.
            id: The id of the entity.

        Returns:
            Its properties; of an edge, also its ends.

        Example:
            >>> graph.at("v1").entity("node:Person", "ana")["age"]
            30
        """
        return self._graph.entity(type_key, id, at=self.commit_id)

    def blob(self, entity: str, type_name: str, id: str, property: str) -> Blob:
        """One blob of the state; see ``Graph.blob``.

        Args:
            entity: ``node`` or ``edge``.
            type_name: The type of the entity.
            id: The id of the entity.
            property: The blob property.

        Returns:
            The blob.

        Example:
            >>> graph.at("v1").blob("node", "City", "Oslo", "photo").size  # doctest: +SKIP
            1024
        """
        return self._graph.blob(entity, type_name, id, property, at=self.commit_id)

    def export(self, types: Sequence[str] | None = None) -> Iterator[bytes]:
        """The state as NDJSON; see ``Graph.export``.

        Args:
            types: Only these types.

        Returns:
            An iterator over chunks of bytes.

        Example:
            >>> b"".join(graph.at("v1").export(["City"]))
            b'{"type":"City","data":{"id":"Oslo","name":"Oslo"}}\\n'
        """
        return self._graph.export(at=self.commit_id, types=types)

    def __repr__(self) -> str:
        return f"<SnapshotView {self.commit_id!r} of {self._graph.uri!r}>"
