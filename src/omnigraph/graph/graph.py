"""``Graph``: the handle that every surface uses.

Owns the everyday methods and the groups of the others. It checks arguments, makes request values
and calls its backend; it must never contain the logic of a method.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from omnigraph.graph.branches import Branches
from omnigraph.graph.deprecated import old_attribute
from omnigraph.graph.history import History
from omnigraph.graph.maintenance import Maintenance
from omnigraph.graph.spark import SparkJobs
from omnigraph.graph.tags import Tags
from omnigraph.graph.views import BranchView, SnapshotView
from omnigraph.model import arguments
from omnigraph.model.requests import (
    ChangeFilter,
    CommitOptions,
    LoadRequest,
    MergeDecisions,
    MergeRequest,
    RestoreRequest,
    SchemaRequest,
    StateRef,
)

if TYPE_CHECKING:
    from omnigraph.catalog.rows import Commit
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.engine.engine import ReadOptions
    from omnigraph.engine.plan.explain import Explanation
    from omnigraph.engine.prepared_query import PreparedQuery
    from omnigraph.engine.result import Result
    from omnigraph.evolution.apply import SchemaResult
    from omnigraph.graph.backend import Backend
    from omnigraph.ingest.load import LoadMode, LoadResult, LoadSource, Progress
    from omnigraph.ingest.sources import LoadFormat
    from omnigraph.lang.query.parameters import Parameters
    from omnigraph.lang.schema import AcceptedSchema, SchemaPlan
    from omnigraph.merge.merge import MergeResult
    from omnigraph.merge.three_way import MergeLevel, MergeStrategy
    from omnigraph.mutation.batch import Batch
    from omnigraph.mutation.mutation import MutationResult
    from omnigraph.snapshots.blobs import Blob
    from omnigraph.snapshots.diff import Diff


class Graph:
    """A handle on one graph; ``omnigraph.open`` and ``omnigraph.init`` make it.

    Threads may share it, and it can be pickled. The batch of a ``write`` block belongs to the
    thread that opened it.

    Attributes:
        branches: Create, list, protect and delete branches.
        tags: Names for commits.
        history: Commits, the change feed, histories of entities.
        maintenance: Checks, indexes, compaction, cleanup, repair, copies.
        spark: Analyses, embeddings, parallel exports, streams.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.branches = Branches(backend.branches)
        self.tags = Tags(backend.tags)
        self.history = History(backend.history)
        self.maintenance = Maintenance(backend.maintenance)
        self.spark = SparkJobs(backend.bulk)

    @property
    def uri(self) -> str:
        """The location of the graph."""
        return self._backend.uri

    def branch(self, name: str) -> BranchView:
        """A view of one branch: the reading methods, and ``mutate``, ``load`` and ``write``.

        Args:
            name: The branch. It is looked up by the first call on the view.

        Returns:
            The view.

        Example:
            >>> with graph.branch("dev").write() as batch:
            ...     batch.insert("City", {"name": "Lima"})
            'Lima'
        """
        return BranchView(self, arguments.text("name", name))

    def at(self, ref: str) -> SnapshotView:
        """A view of one immutable state: the reading methods.

        Args:
            ref: A commit, a tag, a time (ISO 8601), or a branch (its current head).

        Returns:
            The view, pinned to one commit.

        Raises:
            NotFound: ``ref`` names nothing.

        Example:
            >>> graph.at("v1").entity("node:Person", "ana")["age"]
            30
        """
        found = self._backend.reads.snapshot(StateRef(at=arguments.text("ref", ref)))
        return SnapshotView(self, found.commit_id)

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Parameters | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Result:
        """Run a read query.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            params: Values of the query's parameters.
            branch: The branch, ``main`` unless given.
            at: A commit, a tag or a time instead.
            options: Limits and other settings of the run.

        Returns:
            The rows.

        Raises:
            LanguageError: The query is invalid; every problem is listed.
            NotFound: There is no such query, branch or state.
            ParameterError: A parameter is missing, unknown or of the wrong type.
            QueryTimeout: The query ran longer than its limit.
            ResourceLimit: The query needed more memory or rows than its limit.

        Example:
            >>> text = "query all() { match { $p: Person } return { $p.name } order { $p.name } }"
            >>> graph.query(text).rows()
            [{'p.name': 'ana'}, {'p.name': 'bo'}]
        """
        return self._backend.reads.query(
            arguments.text("text", text),
            arguments.optional_text("name", name),
            params,
            StateRef(branch, at),
            options,
        )

    def prepare(
        self,
        text: str,
        name: str | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> PreparedQuery:
        """A read query to run many times, with less work for each run than ``query`` has.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            branch: The branch, ``main`` unless given; every run reads its newest state.
            at: A commit, a tag or a time instead.
            options: Limits and other settings of every run.

        Returns:
            The query; its ``query`` method takes parameters.

        Raises:
            LanguageError: The query is wrong; every problem is listed.
            NotFound: There is no such query, branch or state.

        Example:
            >>> text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
            >>> by_name = graph.prepare(text)
            >>> by_name.query({"n": "ana"}).rows()
            [{'p.age': 30}]
        """
        return self._backend.reads.prepare(
            arguments.text("text", text),
            arguments.optional_text("name", name),
            StateRef(branch, at),
            options,
        )

    def explain(
        self,
        text: str,
        name: str | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Explanation:
        """The plan of a read query: steps, cardinality estimates, access paths and reasons.

        Args:
            text: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            branch: The branch, ``main`` unless given.
            at: A commit, a tag or a time instead.
            options: Settings of the run that is planned.

        Returns:
            The plan; the query is not run.

        Raises:
            LanguageError: The query is invalid; every problem is listed.
            NotFound: There is no such query, branch or state.

        Example:
            >>> text = "query q() { match { $p: Person } return { $p.name } }"
            >>> len(graph.explain(text).lines()) > 0
            True
        """
        return self._backend.reads.explain(
            arguments.text("text", text),
            arguments.optional_text("name", name),
            StateRef(branch, at),
            options,
        )

    def schema(self, branch: str = "main", *, at: str | None = None) -> AcceptedSchema:
        """The schema of a branch, or of an older state.

        Args:
            branch: The branch.
            at: A commit, a tag or a time instead.

        Returns:
            The schema; ``source`` is its text.

        Raises:
            NotFound: There is no such branch or state.

        Example:
            >>> sorted(graph.schema().nodes)
            ['City', 'Person']
        """
        name = arguments.text("branch", branch)
        state = StateRef(name) if at is None else StateRef(at=at)
        return self._backend.reads.schema(state)

    def snapshot(
        self, branch: str = "main", *, commit: str | None = None, version: int | None = None
    ) -> SnapshotPins:
        """The state of a branch: its commit, and the table version of every type.

        Args:
            branch: The branch.
            commit: The state at this commit of the branch.
            version: The state at this manifest version of the branch.

        Returns:
            The snapshot.

        Raises:
            InvalidInput: Both ``commit`` and ``version`` are given.
            NotFound: There is no such branch, commit or version.

        Example:
            >>> sorted(graph.snapshot().pins)
            ['edge:Knows', 'edge:LivesIn', 'node:City', 'node:Person']
        """
        return self._backend.reads.snapshot(
            StateRef(
                arguments.text("branch", branch),
                arguments.optional_text("commit", commit),
                version,
            )
        )

    def entity(
        self,
        type_key: str,
        id: str,
        branch: str | None = None,
        *,
        version: int | None = None,
        at: str | None = None,
    ) -> dict[str, Any]:
        """One entity as an export shows it, with the schema of the state it is read from.

        Args:
            type_key: The type, such as ``node:Person``.
            id: The id of the entity.
            branch: The branch, ``main`` unless given.
            version: The state at this manifest version of the branch.
            at: The state that a commit, a tag or a time names.

        Returns:
            Its properties; of an edge, also its ends.

        Raises:
            EntityNotFound: The state does not hold it.
            InvalidInput: Both ``version`` and ``at`` are given.
            NotFound: There is no such branch or state.
            TypeNotFound: There is no such type.

        Example:
            >>> graph.entity("node:Person", "ana")["age"]
            30
        """
        return self._backend.reads.entity(
            arguments.text("type_key", type_key),
            arguments.text("id", id),
            StateRef(branch, at, version),
        )

    def blob(
        self,
        entity: str,
        type_name: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        at: str | None = None,
    ) -> Blob:
        """One blob: its kind, size and tag, and its bytes on demand.

        Args:
            entity: ``node`` or ``edge``.
            type_name: The type of the entity.
            id: The id of the entity.
            property: The blob property.
            branch: The branch, ``main`` unless given.
            at: A commit, a tag or a time instead.

        Returns:
            The blob; ``read()`` and ``chunks()`` give its bytes.

        Raises:
            EntityNotFound: There is no such entity, or its property is null.
            NotFound: There is no such branch or state.
            TypeNotFound: There is no such type.

        Example:
            >>> graph.blob("node", "City", "Oslo", "photo").read()  # doctest: +SKIP
            b'...'
        """
        return self._backend.reads.blob(
            arguments.text("entity", entity),
            arguments.text("type_name", type_name),
            arguments.text("id", id),
            arguments.text("property", property),
            StateRef(branch, at),
        )

    def export(
        self, branch: str | None = None, at: str | None = None, types: Sequence[str] | None = None
    ) -> Iterator[bytes]:
        """A branch, or an older state, as NDJSON that ``load`` reads back.

        Args:
            branch: The branch, ``main`` unless given.
            at: A commit, a tag or a time instead.
            types: Only these types.

        Returns:
            An iterator over chunks of bytes.

        Raises:
            NotFound: There is no such branch or state.
            TypeNotFound: There is no such type.

        Example:
            >>> b"".join(graph.export(types=["City"]))
            b'{"type":"City","data":{"id":"Oslo","name":"Oslo"}}\\n'
        """
        return self._backend.reads.export(
            StateRef(branch, at), arguments.optional_texts("types", types)
        )

    def diff(
        self,
        old: str,
        new: str,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Diff:
        """The difference between two states, by value.

        Args:
            old: A branch, a tag, a commit or a time.
            new: A branch, a tag, a commit or a time.
            kinds: Only entities of these kinds, ``node`` or ``edge``.
            types: Only entities of these types.
            ops: Only these operations: ``insert``, ``update`` or ``delete``.

        Returns:
            The difference: iterate over it, or read it in pages; ``stats`` counts, and ``schema``
            lists types and properties that only one side has.

        Raises:
            NotFound: One of the states does not exist.

        Example:
            >>> [(str(change.op), change.id) for change in graph.diff("main", "dev")]
            [('insert', 'Rome')]
        """
        return self._backend.reads.diff(
            arguments.text("old", old),
            arguments.text("new", new),
            ChangeFilter.of(kinds, types, ops),
        )

    def mutate(
        self,
        query: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a write query as one commit; one that changes nothing makes none.

        Args:
            query: The query (``.gq``), or several.
            name: Which query of the text, if it holds several.
            params: Values of the query's parameters.
            branch: The branch.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The write fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            How many entities were changed, and the commit.

        Raises:
            Conflict: Another write changed what this one relied on.
            ConstraintViolation: The result would break a rule of the schema.
            LanguageError: The query is invalid; every problem is listed.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.

        Example:
            >>> text = 'query older() { update Person set { age: 31 } where name = "ana" }'
            >>> graph.mutate(text).affected_nodes
            1
        """
        return self._backend.writes.mutate(
            arguments.text("query", query),
            arguments.optional_text("name", name),
            arguments.optional_mapping("params", params),
            arguments.text("branch", branch),
            CommitOptions(message, actor, metadata, expected_head, idempotency_key),
        )

    def write(
        self,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> AbstractContextManager[Batch]:
        """Collect changes in a ``with`` block; they become one commit when it ends.

        Nothing is written when the block ends with an exception.

        Args:
            branch: The branch.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The write fails if this is not the head of the branch.
            idempotency_key: A repeated block with this key writes nothing.

        Returns:
            A context manager that gives the batch.

        Raises:
            Conflict: Another write changed what this one relied on.
            ConstraintViolation: The result would break a rule of the schema.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.

        Example:
            >>> with graph.write(message="a new person") as batch:
            ...     batch.insert("Person", {"name": "cy"})
            'cy'
            >>> batch.result.message
            'a new person'
        """
        return self._backend.writes.write(
            arguments.text("branch", branch),
            CommitOptions(message, actor, metadata, expected_head, idempotency_key),
        )

    def load(
        self,
        source: LoadSource,
        *,
        mode: LoadMode,
        branch: str = "main",
        from_: str | None = None,
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
        """Load records as one commit; an upsert that changes nothing makes none.

        Args:
            source: A path, directory, glob or URI (NDJSON, Parquet or CSV, also compressed), bytes,
                a table (Arrow, pandas, polars or any other with Arrow columns), an iterable of
                records, or a mapping of type names to any of these.
            mode: ``append`` (only new entities), ``upsert`` (set what is given, keep the rest; an
                edge without id is the one with the same ends and equal properties), ``merge``
                (replace whole entities by id; an edge without id is a new one) or ``overwrite``
                (replace every type that occurs in the input).
            branch: The branch.
            from_: Create the branch from this one if it is missing.
            type: The type of the rows of a table.
            columns: The property of each column of a table; ``""`` skips a column.
            format: ``ndjson``, ``parquet`` or ``csv``; otherwise by file name and content.
            strict: Refuse unknown properties; False accepts older files.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The load fails if this is not the head of the branch.
            idempotency_key: A repeated load with this key returns the result of the first.
            progress: Called during the load.
            upkeep: Compact and index afterwards; False leaves that to a later write.
            engine: ``auto`` (where the load is done first; DataFrames on Spark),
                ``spark`` or ``local``.
            quarantine: A new file for invalid records and their errors; the other records are
                loaded.

        Returns:
            Records per type, and the commit.

        Raises:
            Conflict: Another write changed what this one relied on.
            InvalidData: The input is invalid; every problem is listed, and nothing was written.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.

        Example:
            >>> records = [{"type": "Person", "data": {"name": "dee", "age": 5}}]
            >>> graph.load(records, mode="append").total
            1
        """
        request = LoadRequest(
            source,
            mode,
            branch,
            from_,
            type,
            columns,
            format,
            arguments.truth("strict", strict),
            arguments.truth("upkeep", upkeep),
            engine,
            arguments.optional_path("quarantine", quarantine),
        )
        commit = CommitOptions(message, actor, metadata, expected_head, idempotency_key)
        arguments.optional_function("progress", progress)
        return self._backend.writes.load(request, commit, progress)

    def plan_schema(
        self,
        schema: str,
        *,
        branch: str = "main",
        allow_data_loss: bool = False,
        backfill: Mapping[str, Any] | None = None,
        compute: Mapping[str, str] | None = None,
        undrop: Iterable[str] = (),
        name: str = "<schema>",
    ) -> SchemaPlan:
        """The steps from the schema of a branch to a new one. Changes nothing.

        Args:
            schema: The text of the new schema (``.pg``).
            branch: The branch.
            allow_data_loss: As for ``apply_schema``.
            backfill: As for ``apply_schema``.
            compute: As for ``apply_schema``.
            undrop: As for ``apply_schema``.
            name: The name of the text in error messages.

        Returns:
            The plan; ``supported`` says whether it can be applied.

        Raises:
            BranchNotFound: There is no such branch.
            LanguageError: The schema text is invalid; every problem is listed.

        Example:
            >>> text = graph.schema().source.replace("age: I32?", "age: I32?  email: String?")
            >>> [step.kind for step in graph.plan_schema(text).steps]
            ['add_property']
        """
        return self._backend.schemas.plan(
            SchemaRequest(
                schema,
                branch,
                name,
                arguments.truth("allow_data_loss", allow_data_loss),
                backfill,
                compute,
                arguments.texts("undrop", undrop),
            )
        )

    def apply_schema(
        self,
        schema: str,
        *,
        branch: str = "main",
        allow_data_loss: bool = False,
        backfill: Mapping[str, Any] | None = None,
        compute: Mapping[str, str] | None = None,
        undrop: Iterable[str] = (),
        name: str = "<schema>",
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        engine: str = "auto",
    ) -> SchemaResult:
        """Apply a schema to a branch, as one commit; none if the schema does not change.

        Args:
            schema: The text of the new schema (``.pg``).
            branch: The branch.
            allow_data_loss: Remove for good what is dropped. Otherwise it stays readable at older
                commits and can be restored.
            backfill: Values of new properties for entities that exist: ``{"Person.age": 0}``.
            compute: New properties computed from others: ``{"Person.full": 'first + " " + last'}``.
            undrop: Types and properties (``Type.property``) of the new schema that get back the
                data that was dropped under their names.
            name: The name of the text in error messages.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The change fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.
            engine: ``local``, ``spark`` (executors write the columns of large tables), or ``auto``.

        Returns:
            The plan that was applied, and the commit.

        Raises:
            ConstraintViolation: Stored entities break a new rule; all of them are listed.
            LanguageError: The schema text is invalid; every problem is listed.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.
            SchemaChangeRefused: A step of the plan is not supported.

        Example:
            >>> text = graph.schema().source.replace("age: I32?", "age: I32?  email: String?")
            >>> graph.apply_schema(text).commit.kind
            'schema_apply'
        """
        request = SchemaRequest(
            schema,
            branch,
            name,
            arguments.truth("allow_data_loss", allow_data_loss),
            backfill,
            compute,
            arguments.texts("undrop", undrop),
            engine,
        )
        commit = CommitOptions(message, actor, metadata, expected_head, idempotency_key)
        return self._backend.schemas.apply(request, commit)

    def merge(
        self,
        source: str,
        target: str = "main",
        *,
        dry_run: bool = False,
        delete_branch: bool = False,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        engine: str | None = None,
        level: MergeLevel = "property",
        strategy: MergeStrategy | None = None,
        by_type: Mapping[str, MergeStrategy] | None = None,
        resolutions: Iterable[Mapping[str, Any]] = (),
    ) -> MergeResult:
        """Merge a branch into another, as one commit with two parents.

        Changes of different properties of one entity merge. It is a conflict if both sides changed
        a property to different values, if one side deleted what the other changed, or if the result
        would break a rule of the schema.

        Args:
            source: The branch to merge.
            target: The branch to merge into.
            dry_run: Only report what would change.
            delete_branch: Delete the source after the merge.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the commit.
            expected_head: The merge fails if this is not the head of the target.
            idempotency_key: A repeated call with this key returns the result of the first.
            engine: ``local``, ``spark``, or ``auto`` (by the size of what the source touched).
            level: ``property``, or ``entity``: an entity that both sides changed is a conflict.
            strategy: Decide conflicts for the target (``ours``) or the source (``theirs``).
            by_type: The strategy for single types.
            resolutions: Decisions about single entities. What they do not decide stays a conflict.

        Returns:
            The outcome, and the commit. The outcome of a dry run is ``conflicts`` if there are any.

        Raises:
            BranchNotFound: There is no such branch.
            MergeConflicts: There are conflicts; all of them are listed, and nothing was written.
            PreconditionFailed: The target has another head than ``expected_head``.
            ReadOnly: The handle is read-only, and this is not a dry run.

        Example:
            >>> str(graph.merge("dev").outcome)
            'fast_forward'
        """
        request = MergeRequest(
            source,
            target,
            MergeDecisions.of(level, strategy, by_type, resolutions),
            arguments.truth("dry_run", dry_run),
            arguments.truth("delete_branch", delete_branch),
            engine,
        )
        commit = CommitOptions(message, actor, metadata, expected_head, idempotency_key)
        return self._backend.merges.merge(request, commit)

    def revert(
        self,
        commit_id: str,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        level: MergeLevel = "property",
        strategy: MergeStrategy | None = None,
        by_type: Mapping[str, MergeStrategy] | None = None,
        resolutions: Iterable[Mapping[str, Any]] = (),
    ) -> Commit | None:
        """Undo a commit with a new one. A value that a later commit changed again is a conflict.

        A merge is undone relative to its first parent.

        Args:
            commit_id: The commit to undo.
            branch: The branch to undo it on.
            message: Kept with the new commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the new commit.
            expected_head: The call fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.
            level: As for ``merge``.
            strategy: As for ``merge``: ``theirs`` undoes, ``ours`` keeps.
            by_type: As for ``merge``.
            resolutions: As for ``merge``.

        Returns:
            The new commit; None if nothing is left to undo.

        Raises:
            CommitNotFound: There is no such commit.
            MergeConflicts: There are conflicts; all of them are listed, and nothing was written.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.

        Example:
            >>> head = graph.history.commits(limit=1)[0]
            >>> graph.revert(head.commit_id).kind
            'revert'
        """
        return self._backend.merges.revert(
            arguments.text("commit_id", commit_id),
            arguments.text("branch", branch),
            MergeDecisions.of(level, strategy, by_type, resolutions),
            CommitOptions(message, actor, metadata, expected_head, idempotency_key),
        )

    def cherry_pick(
        self,
        commit_id: str,
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        level: MergeLevel = "property",
        strategy: MergeStrategy | None = None,
        by_type: Mapping[str, MergeStrategy] | None = None,
        resolutions: Iterable[Mapping[str, Any]] = (),
    ) -> Commit | None:
        """Apply the changes of a commit to another branch.

        Args:
            commit_id: The commit to apply.
            branch: The branch to apply it to.
            message: Kept with the new commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the new commit.
            expected_head: The call fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.
            level: As for ``merge``.
            strategy: As for ``merge``.
            by_type: As for ``merge``.
            resolutions: As for ``merge``.

        Returns:
            The new commit; None if the branch has all these changes already.

        Raises:
            CommitNotFound: There is no such commit.
            MergeConflicts: There are conflicts; all of them are listed, and nothing was written.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.

        Example:
            >>> head = graph.history.commits("dev", limit=1)[0]
            >>> graph.cherry_pick(head.commit_id).kind
            'cherry_pick'
        """
        return self._backend.merges.cherry_pick(
            arguments.text("commit_id", commit_id),
            arguments.text("branch", branch),
            MergeDecisions.of(level, strategy, by_type, resolutions),
            CommitOptions(message, actor, metadata, expected_head, idempotency_key),
        )

    def restore(
        self,
        target: str,
        only: Mapping[str, Collection[str] | None],
        branch: str = "main",
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> Commit | None:
        """Restore entities to an older state.

        Args:
            target: The older state: a commit, a tag, a time or a branch.
            only: Ids by type key: ``{"node:Person": ["ana"]}``; None means all of the type.
            branch: The branch to restore them on.
            message: Kept with the new commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the new commit.
            expected_head: The call fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            The new commit; None if nothing differs.

        Raises:
            ConstraintViolation: The result would break a rule of the schema.
            NotFound: There is no such state.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.
            TypeNotFound: There is no such type.

        Example:
            >>> _ = graph.mutate('query q() { update Person set { age: 9 } where name = "ana" }')
            >>> graph.restore("v1", {"node:Person": ["ana"]}).kind
            'restore'
        """
        return self._backend.merges.restore(
            RestoreRequest(target, only, branch),
            CommitOptions(message, actor, metadata, expected_head, idempotency_key),
        )

    def reset(
        self,
        target: str,
        branch: str,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> Commit | None:
        """Reset a branch to an older state of its history, as a new commit.

        The cost does not depend on the size of the change.

        Args:
            target: A commit, tag or time in the history of the branch.
            branch: The branch.
            message: Kept with the new commit.
            actor: The author; otherwise the one the graph was opened with.
            metadata: Kept with the new commit.
            expected_head: The call fails if this is not the head of the branch.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            The new commit; None if the branch has this state already.

        Raises:
            BranchProtected: The branch is protected.
            NotFound: There is no such branch or state.
            PreconditionFailed: The branch has another head than ``expected_head``.
            ReadOnly: The handle is read-only.

        Example:
            >>> graph.reset("v1", "dev").kind
            'reset'
        """
        return self._backend.merges.reset(
            arguments.text("target", target),
            arguments.text("branch", branch),
            CommitOptions(message, actor, metadata, expected_head, idempotency_key),
        )

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"Graph({self.uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self._backend,)

    if not TYPE_CHECKING:  # for a type checker, the old names do not exist

        def __getattr__(self, name: str) -> Any:
            return old_attribute(self, name)
