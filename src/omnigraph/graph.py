"""The graph as users hold it: open it, look at it, write to it.

A ``Graph`` is a thin, thread-safe, picklable handle. It owns no logic: reading and writing are the
business of the rooms below, and every name here is public API.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.argument_types import checked, checked_methods
from omnigraph.commit.operator import Operator, PendingWrite, Recovered
from omnigraph.commit.transaction import WriteTransaction
from omnigraph.errors import EntityNotFound
from omnigraph.ids import new_ulid
from omnigraph.manifest.branches import MAIN_BRANCH
from omnigraph.manifest.create import create_graph
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import MAIN
from omnigraph.manifest.schemas import load_schema
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.read.blobs import Blob, BlobSelector, find_blob
from omnigraph.read.diff import Diff, DiffFilter
from omnigraph.read.engine import Reader, ReadOptions
from omnigraph.read.explain import Explanation
from omnigraph.read.export import export
from omnigraph.read.images import images
from omnigraph.read.result import Result
from omnigraph.schema import AcceptedSchema, accept_schema
from omnigraph.spark.methods import SparkMethods
from omnigraph.storage.columns import Fill
from omnigraph.storage.indexing import Build
from omnigraph.storage.locating import membership
from omnigraph.storage.locations import parse_location
from omnigraph.storage.tables import TableRef
from omnigraph.write.blobs import BlobPolicy
from omnigraph.write.committing import Attempt
from omnigraph.write.entity_purge import finish_entity_purges
from omnigraph.write.load import LoadSpec, Mode, OneLoad
from omnigraph.write.merge_engine import ChooseEngine
from omnigraph.write.optimize import Rewrite
from omnigraph.write.purge import finish_purges
from omnigraph.write.schema_methods import SchemaMethods
from omnigraph.write.upkeep_methods import UpkeepMethods

if TYPE_CHECKING:
    import os

# A library does not print; here and not in the package, which must stay quick to import.
logging.getLogger("omnigraph").addHandler(logging.NullHandler())


@checked
def init(uri: str | os.PathLike[str], schema: str, *, actor: str | None = None) -> Graph:
    """Create a graph with the given schema text and open it."""
    location = parse_location(uri)
    accepted = accept_schema(schema, mint=new_ulid)
    return Graph(create_graph(location, accepted, actor=actor))


@checked
def open(
    uri: str | os.PathLike[str], *, read_only: bool = False, blob_bases: Sequence[str] = ()
) -> Graph:
    """Open a graph; unless read-only, an older format is brought up to date and unfinished writes
    of dead processes are resolved.

    ``blob_bases`` are URIs below which blobs in written data may refer to bytes outside the graph.
    """
    policy = BlobPolicy(tuple(blob_bases))
    graph = Graph(Repository.open(parse_location(uri)), read_only=read_only, blobs=policy)
    if not read_only:
        graph._repository.main.migrate()
        graph.recovered_at_open = graph.recover()
    graph._reader.get_ready()
    return graph


@checked_methods
class Graph(SchemaMethods, UpkeepMethods, SparkMethods):
    """A handle on one graph."""

    def __init__(
        self,
        repository: Repository,
        *,
        read_only: bool = False,
        blobs: BlobPolicy = BlobPolicy(),  # noqa: B008 - immutable
    ) -> None:
        self._repository = repository
        repository.tables.relocates = not read_only
        self._read_only = read_only
        self._blobs = blobs
        self._transaction = WriteTransaction(repository, read_only=read_only)
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
        if commit is not None:
            return self._repository.snapshot_at_commit(found, commit)
        if version is not None:
            return self._repository.snapshot_at_version(found, version)
        return self._repository.snapshot(found)

    def schema(self, branch: str = MAIN, *, at: str | None = None) -> AcceptedSchema:
        """The accepted schema of a branch, or the one it had at a commit."""
        if at is not None:
            return self._reader.state(at).schema
        state = self._repository.manifest(self._repository.branch(branch)).current()
        return load_schema(state, state.head.schema_hash)

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
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
        return export(self._repository, snapshot, self._reader.schema(snapshot), types)

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
        from omnigraph.spark.engine import start_tasks
        from omnigraph.spark.export import export_to

        snapshot = self._reader.pin(branch, at)
        schema = self._reader.schema(snapshot)
        return export_to(
            start_tasks(), self._repository, snapshot, schema, target, format=format, types=types
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
        return find_blob(self._repository, snapshot, self._reader.schema(snapshot), selector)

    def entity(
        self, type_key: str, id: str, branch: str = MAIN, *, version: int | None = None
    ) -> dict[str, Any]:
        """One entity as an export shows it; ``version`` reads a published version of its type."""
        import pyarrow as pa

        snapshot = self._repository.snapshot(self._repository.branch(branch))
        pin = snapshot.pin(type_key)
        ref = pin.ref if version is None else TableRef(pin.ref.path, pin.ref.branch, version)
        table = self._repository.tables.open(ref)
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
        from omnigraph.spark.streaming import stream_writer

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
        from omnigraph.spark.engine import choose_engine, open_load

        if choose_engine(engine, spec) == "spark":
            return open_load(spec, start, self._blobs, for_new_branch=for_new_branch)
        return super()._open_load(spec, start, engine, for_new_branch)

    def _merge_engine(self, engine: str | None) -> ChooseEngine:
        from omnigraph.spark.engine import merge_engine

        return merge_engine(self._repository, engine)

    def _index_builder(self, engine: str) -> Build:
        from omnigraph.spark.maintenance import index_builder

        return index_builder(self._repository, engine)

    def _column_filler(self, engine: str) -> Fill:
        from omnigraph.spark.maintenance import column_filler

        return column_filler(self._repository, engine)

    def _rewriter(self, engine: str) -> Rewrite:
        from omnigraph.spark.maintenance import rewriter

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
        return (_reopen, (self.uri, self._read_only, self._blobs))


def _reopen(uri: str, read_only: bool, blobs: BlobPolicy) -> Graph:
    return Graph(Repository.open(parse_location(uri)), read_only=read_only, blobs=blobs)
