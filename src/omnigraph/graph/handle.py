"""The graph as users hold it: open it, look at it, write to it.

A ``Graph`` is a thin, thread-safe, picklable handle. It owns no logic: reading and writing are the
business of the rooms below, and every name here is public API.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from omnigraph.catalog.branches.deleted import deletion_noticed, noticing_deletion
from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.create import create_graph
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.engine.engine import Reader, ReadOptions
from omnigraph.engine.plan.explain import Explanation
from omnigraph.engine.result import Result
from omnigraph.errors import EntityNotFound, InvalidInput, StorageFailure
from omnigraph.evolution.purge_dropped import finish_purges
from omnigraph.graph.computing import SparkMethods
from omnigraph.graph.maintaining import UpkeepMethods
from omnigraph.graph.schema import SchemaMethods
from omnigraph.ingest.load import LoadSpec, Mode, OneLoad
from omnigraph.lang.query.parameters import Parameters
from omnigraph.lang.schema import AcceptedSchema, accept_schema
from omnigraph.maintenance.entity_purge import finish_entity_purges
from omnigraph.maintenance.optimize import Rewrite
from omnigraph.merge.engine import ChooseEngine
from omnigraph.model.arguments import checked, checked_methods
from omnigraph.model.ids import new_ulid
from omnigraph.model.outcome import told
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt
from omnigraph.snapshots.blobs import Blob, BlobSelector, find_blob
from omnigraph.snapshots.diff import Diff, DiffFilter
from omnigraph.snapshots.export import export
from omnigraph.snapshots.images import images
from omnigraph.spark import engine as spark_engine
from omnigraph.spark.engine import choose_engine, merge_engine, open_load
from omnigraph.spark.export import export_to
from omnigraph.spark.maintenance import column_filler, index_builder, rewriter
from omnigraph.spark.streaming import stream_writer
from omnigraph.storage.lance.lookup import membership
from omnigraph.storage.lance.staging.columns import Fill
from omnigraph.storage.lance.staging.indexes import Build
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.store import Durability, chosen_durability
from omnigraph.transaction.actors import configured_actor
from omnigraph.transaction.recovery.operator import Operator, PendingWrite, Recovered
from omnigraph.transaction.transaction import WriteTransaction

# A library does not print; here and not in the package, which must stay quick to import.
logging.getLogger("omnigraph").addHandler(logging.NullHandler())


@checked
@told()
def init(
    uri: str | os.PathLike[str],
    schema: str,
    *,
    actor: str | None = None,
    durability: Durability | None = None,
) -> Graph:
    """Create a graph with the given schema text and open it; ``durability`` as for ``open``.

    ``actor`` is who made it (otherwise ``OMNIGRAPH_ACTOR`` from the environment).
    """
    location = parse_location(uri)
    accepted = accept_schema(schema, mint=new_ulid)
    configured = configured_actor()
    by = configured if actor is None else actor
    chosen = chosen_durability(durability)
    made = create_graph(location, accepted, actor=by, durability=chosen)
    return Graph(made, actor=configured)


@checked
def open(
    uri: str | os.PathLike[str],
    *,
    read_only: bool = False,
    blob_bases: Sequence[str] = (),
    actor: str | None = None,
    durability: Durability | None = None,
) -> Graph:
    """Open a graph; unless read-only, an older format is brought up to date and unfinished writes
    of dead processes are resolved.

    ``blob_bases`` are URIs below which blobs in written data may refer to bytes outside the graph.
    ``actor`` is who writes through this handle, where a write does not say (otherwise
    ``OMNIGRAPH_ACTOR`` from the environment). With ``durability="fsync"`` a write on a local disk
    is acknowledged when it would survive the loss of power; ``"process"`` (a crash of the process
    loses nothing) is the default, which ``OMNIGRAPH_DURABILITY`` sets.
    """
    policy = BlobPolicy(tuple(blob_bases))
    by = configured_actor() if actor is None else actor
    repository = Repository.open(parse_location(uri), durability=chosen_durability(durability))
    graph = Graph(repository, read_only=read_only, blobs=policy, actor=by)
    if not read_only:
        with suppress(StorageFailure):  # a place without permission is refused by its first write
            repository.objects.ensure_writable()
        graph._repository.main.migrate()
        graph.recovered_at_open = graph.recover()
    graph._reader.get_ready()
    return graph


@checked_methods
class Graph(SchemaMethods, UpkeepMethods, SparkMethods):
    """A handle on one graph.

    Threads share it freely. The batch of a ``write()`` block belongs to the thread that opened it.
    """

    def __init__(
        self,
        repository: Repository,
        *,
        read_only: bool = False,
        blobs: BlobPolicy = BlobPolicy(),  # noqa: B008 - immutable
        actor: str | None = None,
    ) -> None:
        self._repository = repository
        repository.tables.relocates = not read_only
        self._read_only = read_only
        self._blobs = blobs
        self._actor = actor
        self._transaction = WriteTransaction(repository, read_only=read_only, actor=actor)
        self._reader = Reader(repository)
        self._operator = Operator(repository, self._transaction.recovery)
        self.recovered_at_open = Recovered([], [], [])

    # -- looking -----------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        return self._repository.location.uri

    def snapshot(
        self, branch: str = MAIN, *, commit: str | None = None, version: int | None = None
    ) -> SnapshotPins:
        """The state of a branch: now, at one of its commits, or at a manifest version."""
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            if commit is not None:
                return self._repository.snapshot_at_commit(found, commit)
            if version is not None:
                return self._repository.snapshot_at_version(found, version)
            return self._repository.snapshot(found)

    def schema(self, branch: str = MAIN, *, at: str | None = None) -> AcceptedSchema:
        """The accepted schema of a branch, or the one it had at a commit."""
        if at is not None:
            return self._reader.state(at).schema
        found = self._repository.branch(branch)
        with deletion_noticed(self._repository, found):
            state = self._repository.manifest(found).current()
            return load_schema(state, state.head.schema_hash)

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Parameters | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Result:
        """Run a read query on a branch (``main`` unless said), or at a commit."""
        return self._reader.query(text, name, params, branch, at, options)

    def diff(
        self,
        old: str,
        new: str,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Diff:
        """What sets two states apart: each is a branch, a tag, a commit id or a time.

        The result streams its changes when iterated and gives them in pages; ``stats`` counts them
        and ``schema`` lists types and properties that only one side has. The filters restrict what
        is shown: kinds (``node``, ``edge``), names of types, and ops (``insert``, ``update``,
        ``delete``).
        """
        chosen = DiffFilter(frozenset(kinds), frozenset(types), frozenset(ops))
        return Diff(self._repository, self._reader.state(old), self._reader.state(new), chosen)

    def explain(
        self,
        text: str,
        name: str | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Explanation:
        """How a read query would be carried out: steps, estimates, access paths and reasons."""
        return self._reader.explain(text, name, branch, at, options)

    def export(
        self, branch: str | None = None, at: str | None = None, types: Sequence[str] | None = None
    ) -> Iterator[bytes]:
        """A branch, or the state at a commit, as chunks of NDJSON that a load reads back."""
        snapshot = self._reader.pin(branch, at)
        with deletion_noticed(self._repository, snapshot.branch):
            schema = self._reader.schema(snapshot)
        chunks = export(self._repository, snapshot, schema, types)
        return noticing_deletion(self._repository, snapshot.branch, chunks)

    def export_to(
        self,
        target: str | os.PathLike[str],
        *,
        format: str = "ndjson",
        branch: str | None = None,
        at: str | None = None,
        types: Sequence[str] | None = None,
    ) -> dict[str, int]:
        """Write a branch, or the state at a commit, to a new directory in parallel, on Spark.

        ``format`` is ``ndjson``, ``parquet`` or ``csv``. Returns the entities per type key.
        """
        snapshot = self._reader.pin(branch, at)
        tasks = spark_engine.start_tasks()
        with deletion_noticed(self._repository, snapshot.branch):
            schema = self._reader.schema(snapshot)
            return export_to(
                tasks, self._repository, snapshot, schema, target, format=format, types=types
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
        """One blob: its kind, size and tag, and its bytes on demand."""
        snapshot = self._reader.pin(branch, at)
        selector = BlobSelector(entity, type_name, id, property)
        with deletion_noticed(self._repository, snapshot.branch):
            schema = self._reader.schema(snapshot)
            return find_blob(self._repository, snapshot, schema, selector)

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

        That is the head of a branch (``main`` unless said), what the branch was at a manifest
        ``version`` (a commit's ``graph_manifest_version``), or the state that a commit, a tag or a
        time names (``at``).
        """
        if version is None:
            snapshot = self._reader.pin(branch, at)
        elif at is None:
            snapshot = self.snapshot(MAIN if branch is None else branch, version=version)
        else:
            raise InvalidInput("version and at both name a state", remedy="Keep one of them.")
        with deletion_noticed(self._repository, snapshot.branch):
            table = self._repository.tables.open(snapshot.pin(type_key).ref)
            found = table.scan(filter=membership("id", pa.array([id])), with_row_id=True)
            if not found.num_rows:
                raise EntityNotFound(
                    f"there is no {type_key.partition(':')[2]} with id {id!r}",
                    details={"type_key": type_key, "id": id},
                )
            return images(self._reader.schema(snapshot).type(type_key), table, found)[0]

    # -- writing -----------------------------------------------------------------------------------

    def recover(self, *, set_aside: bool = False) -> Recovered:
        """Resolve what dead writers left, on every branch.

        ``set_aside`` also undoes writes whose records cannot be read, and keeps those files.
        """
        self._transaction.require_writable()
        recovered = self._operator.recover(set_aside=set_aside)
        finish_purges(self._repository, MAIN_BRANCH)
        finish_entity_purges(self._repository)
        return recovered

    def pending_writes(self) -> list[PendingWrite]:
        """Writes in flight and writes left by dead processes, with what will happen to them."""
        return self._operator.pending()

    def recoveries(self) -> list[dict[str, Any]]:
        """Every finished recovery, newest first."""
        return self._operator.finished()

    def stream(
        self,
        frame: Any,
        split: str | Callable[[Any], Mapping[str, Any]],
        *,
        mode: Mode,
        query: str,
        checkpoint: str | os.PathLike[str],
        branch: str = MAIN,
        columns: Mapping[str, str] | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> Any:
        """A writer of a streaming DataFrame: one commit per micro-batch, exactly once.

        ``split`` is the type of the rows, or a function from a micro-batch to a mapping of types to
        frames. ``query`` names the stream for ever. Call ``start()`` on the result.
        """
        self._transaction.require_writable()
        return stream_writer(
            self.load,
            frame,
            split,
            mode=mode,
            query=query,
            checkpoint=checkpoint,
            branch=branch,
            columns=columns,
            actor=actor,
            message=message,
        )

    def _open_load(
        self, spec: LoadSpec, start: Attempt, engine: str | None, for_new_branch: bool
    ) -> OneLoad:
        if choose_engine(engine, spec) == "spark":
            return open_load(spec, start, self._blobs, for_new_branch=for_new_branch)
        return super()._open_load(spec, start, engine, for_new_branch)

    def _merge_engine(self, engine: str | None) -> ChooseEngine:
        return merge_engine(self._repository, engine)

    def _index_builder(self, engine: str) -> Build:
        return index_builder(self._repository, engine)

    def _column_filler(self, engine: str) -> Fill:
        return column_filler(self._repository, engine)

    def _rewriter(self, engine: str) -> Rewrite:
        return rewriter(self._repository, engine)

    def _forget_what_was_read(self) -> None:
        self._reader.forget()

    # -- being a handle ----------------------------------------------------------------------------

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"Graph({self.uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        durability = self._repository.durability
        return (_reopen, (self.uri, self._read_only, self._blobs, self._actor, durability))


def _reopen(
    uri: str, read_only: bool, blobs: BlobPolicy, actor: str | None, durability: Durability
) -> Graph:
    repository = Repository.open(parse_location(uri), durability=durability)
    return Graph(repository, read_only=read_only, blobs=blobs, actor=actor)
