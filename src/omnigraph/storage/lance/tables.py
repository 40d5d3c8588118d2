"""Lance tables: pinned reads, and the only module that commits to a table.

Other modules read through ``PinnedTable`` and stage through ``storage.lance.staging``, which writes
unreferenced files. ``TableStore`` commits staged writes strictly: the newest version goes from the
pinned one to exactly the next, or the call raises a typed error. A test walks the source tree and
fails when another module calls one of Lance's committing functions.

The newest version is found without listing: versions are opened by number, and a newer one is
detected by probing for the next version's file.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph.errors import Contention, CorruptData, Drift
from omnigraph.model.checkpoint import checkpoint
from omnigraph.model.lru import LruCache
from omnigraph.settings import StorageSettings
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import CommitRefused, translate, translated
from omnigraph.storage.lance.files.completeness import require_complete_files
from omnigraph.storage.lance.files.fsync import TableSync
from omnigraph.storage.lance.files.relocation import (
    foreign_root,
    graph_moved,
    rebased,
    relocate,
)
from omnigraph.storage.lance.fingerprints import Fingerprints
from omnigraph.storage.lance.session import lance_session
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.store import ObjectStore

HANDLES_MAX = 512  # open handles kept per graph; each is a few KiB plus shared caches
OPERATION_PROPERTY = "omnigraph.operation"
KIND_PROPERTY = "omnigraph.kind"
ROW_ID = "_rowid"  # the column of stable row ids in scans
FRAGMENT_SHIFT = 32  # a row's address is its fragment id, shifted, plus its offset
RELOCATIONS_MAX = 3  # per open; more than one if a process writes under another location meanwhile
DISTANCE = "_distance"  # the column that Lance adds to the result of a vector search
HIDDEN_PREFIX = "#"  # of the names of hidden columns; no property has it
_VERSION_MAX = 2**64 - 1


def operation_properties(operation_id: str, kind: str) -> dict[str, str]:
    """The properties of every table transaction of a write, by which recovery identifies it."""
    return {OPERATION_PROPERTY: operation_id, KIND_PROPERTY: kind}


def version_file(version: int) -> str:
    """The name of a version file; names count down."""
    return f"{_VERSION_MAX - version:020d}.manifest"


def fork_ref(path: str, name: str) -> str:
    """The object that makes a physical branch of a table known to Lance."""
    return f"{path}/_refs/branches/{quote(name, safe='')}.json"


@dataclass(frozen=True, slots=True)
class TableRef:
    """One immutable version of one table: path in the graph, physical branch, version number."""

    path: str
    branch: str | None
    version: int

    @property
    def dataset_path(self) -> str:
        """The path of the Lance dataset: a physical branch is a dataset below the root's tree."""
        return self.path if self.branch is None else f"{self.path}/tree/{self.branch}"

    def at(self, version: int) -> TableRef:
        return TableRef(self.path, self.branch, version)


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """Written files and a prepared transaction that is not committed yet."""

    ref: TableRef
    transaction: Any
    kind: str
    rows_after: int
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    removed: Fingerprints = None  # of the deleted ids

    @property
    def uuid(self) -> str:
        return str(self.transaction.uuid)


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """The transaction of one version of a table, by which recovery identifies its operation."""

    version: int
    uuid: str | None
    operation: str | None
    kind: str | None
    restores: int | None = None  # the older version whose content this one restored


class Counters:
    """Counts of Lance calls, for tests and for ``--profile``."""

    def __init__(self) -> None:
        self.opens = 0
        self.scans = 0
        self.probes = 0
        self.commits = 0


@dataclass(frozen=True)
class PinnedTable:
    """A table at one version. Immutable: all results stay valid.

    Threads share ``dataset``, so only calls that are safe concurrently are made on it. Calls that
    borrow a dataset object mutably are made on ``private_dataset()``.
    """

    ref: TableRef
    dataset: lance.LanceDataset = field(repr=False)
    counters: Counters = field(repr=False)

    def private_dataset(self) -> lance.LanceDataset:
        """A dataset object that no other thread has; makes no request."""
        return copy(self.dataset)

    @cached_property
    def rows(self) -> int:
        return int(self.dataset.count_rows())

    @cached_property
    def schema(self) -> pa.Schema:
        """The visible columns, without those of dropped properties."""
        hidden = {field.name for field in self.hidden}
        stored = self.dataset.schema
        shown = [field for field in stored if field.name not in hidden]
        return pa.schema(shown, metadata=stored.metadata)

    @cached_property
    def hidden(self) -> list[pa.Field]:
        """Columns whose properties were dropped while their data stays."""
        return [field for field in self.dataset.schema if field.name.startswith(HIDDEN_PREFIX)]

    @cached_property
    def fragment_ids(self) -> list[int]:
        """The fragment ids in order; cheaper than ``fragments``."""
        return [fragment.fragment_id for fragment in self.dataset.get_fragments()]

    @cached_property
    def fragments(self) -> dict[int, Any]:
        """Fragment metadata by id, as this version lists them."""
        return {f.fragment_id: f.metadata for f in self.dataset.get_fragments()}

    @cached_property
    def fragment_files(self) -> dict[int, tuple[str, ...]]:
        """The data files of each fragment. They identify it on every branch, while fragment ids are
        assigned per branch."""
        return {
            number: tuple(str(file.path) for file in fragment.files)
            for number, fragment in self.fragments.items()
        }

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        fragment_ids: Sequence[int] | None = None,
        older: Sequence[tuple[PinnedTable, Sequence[int]]] = (),
        batch_rows: int | None = None,
    ) -> pa.Table:
        """Rows as an Arrow table, in storage order.

        Fragments of ``older`` versions of the same dataset can be read with those of this version.
        ``batch_rows`` makes small scans faster.
        """
        self.counters.scans += 1
        chosen = None
        if fragment_ids is not None:
            parts = [(self, fragment_ids), *older]
            chosen = [table.dataset.get_fragment(f) for table, ids in parts for f in ids]
        with translated(f"reading {self.ref.path}"):
            reader = self.dataset.scanner(
                columns=self.schema.names if columns is None else list(columns),
                filter=filter,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                fragments=chosen,
                scan_in_order=True,
                batch_size=batch_rows,
            ).to_reader()
            batches = []
            for batch in reader:
                checkpoint()
                batches.append(batch)
            return pa.Table.from_batches(batches, schema=reader.schema)

    def validity(
        self,
        columns: Sequence[str],
        filter: str | None = None,
        *,
        fragment_ids: Sequence[int] | None = None,
    ) -> pa.Table:
        """``id``, row id and address, and for each column whether the row has a value.

        The values themselves are not read into memory: vectors would be far larger.
        """
        self.counters.scans += 1
        projection = {"id": "id", **{name: f"`{name}` IS NOT NULL" for name in columns}}
        chosen = None
        if fragment_ids is not None:
            chosen = [self.dataset.get_fragment(number) for number in fragment_ids]
        with translated(f"reading {self.ref.path}"):
            return self.dataset.scanner(
                columns=projection,
                filter=filter,
                with_row_id=True,
                with_row_address=True,
                fragments=chosen,
                scan_in_order=True,
            ).to_table()

    def nearest(self, column: str, query: Any, count: int, probes: int, metric: str) -> pa.Table:
        """The nearest rows to a vector, with vectors and addresses.

        ``probes`` partitions of the index are searched, and all rows that it does not cover.
        """
        self.counters.scans += 1
        search = {
            "column": column,
            "q": query,
            "k": count,
            "metric": metric,
            "minimum_nprobes": probes,
            "maximum_nprobes": probes,
        }
        with translated(f"searching {self.ref.path}"):
            return self.dataset.scanner(
                columns=[column, DISTANCE], nearest=search, with_row_address=True
            ).to_table()

    def take(self, row_ids: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by stable row id, in that order; the cost is proportional to their number."""
        self.counters.scans += 1
        with translated(f"reading {self.ref.path}"):
            wanted = self.schema.names if columns is None else list(columns)
            return self.dataset._take_rows(list(row_ids), columns=wanted)


class TableStore:
    """The tables of one graph location. Thread-safe; handles are shared and immutable."""

    def __init__(self, location: Location, objects: ObjectStore, storage: StorageSettings) -> None:
        location.require_tables()
        self.location = location
        self.options = location.storage_options(storage) or None
        synced = storage.durability == "fsync" and location.is_local
        self._sync = TableSync(location.path) if synced else None
        self.objects = objects
        self.counters = Counters()
        self.relocates = False  # whether forks that refer to another location may be rewritten
        self.rebases = False  # whether such forks are read with other base paths, in memory only
        self._handles: LruCache[TableRef, PinnedTable] = LruCache(HANDLES_MAX)
        self._fork_points: dict[str, TableRef] = {}
        self._lock = threading.Lock()

    def open(self, ref: TableRef) -> PinnedTable:
        """The table at exactly this version."""
        generation = self._handles.generation
        pinned = self._handles.get(ref)
        if pinned is not None:
            return pinned
        dataset = self._opened(ref, f"opening {ref.path} at version {ref.version}", ref.version)
        return self._cache(ref, dataset, generation)

    def open_newest(self, path: str, branch: str | None = None) -> PinnedTable:
        """The newest version, found by listing: for the first open of a manifest only."""
        where = TableRef(path, branch, 0)
        dataset = self._opened(where, f"opening {path}", None)
        if int(dataset.version) < 1:
            # Lance reads a version file of zeros, as after power loss, as version 0.
            raise CorruptData(f"opening {path}: its newest version is damaged")
        return self._cache(where.at(int(dataset.version)), dataset)

    def has_version(self, ref: TableRef) -> bool:
        """Whether this version exists: one small request, no listing."""
        self.counters.probes += 1
        return self.objects.exists(f"{ref.dataset_path}/_versions/{version_file(ref.version)}")

    def newest_from(self, known: TableRef) -> TableRef:
        """The newest version, given one that exists: gallop forward, then bisect."""
        low, step = known.version, 1
        if not self.has_version(known.at(low + 1)):
            return known
        low += 1
        while self.has_version(known.at(low + step)):
            low += step
            step *= 2
        high = low + step  # does not exist
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.has_version(known.at(middle)) else (low, middle)
        return known.at(low)

    def transaction(self, ref: TableRef) -> TransactionInfo:
        """The transaction that made this version."""
        pinned = self.open(ref)
        try:
            made = pinned.private_dataset().read_transaction(ref.version)
        except TypeError:
            # Lance cannot read its own compactions that rewrote an index. Omnigraph makes none.
            return TransactionInfo(ref.version, None, None, None)
        except Exception as error:
            doing = f"reading the transaction of {ref.path} at version {ref.version}"
            raise translate(error, doing) from error
        if made is None:
            return TransactionInfo(ref.version, None, None, None)
        properties = made.transaction_properties or {}
        return TransactionInfo(
            ref.version,
            str(made.uuid),
            properties.get(OPERATION_PROPERTY),
            properties.get(KIND_PROPERTY),
            made.operation.version if isinstance(made.operation, LanceOperation.Restore) else None,
        )

    def fork_point(self, ref: TableRef) -> TableRef:
        """The version that the physical branch of ``ref`` was forked from."""
        assert ref.branch is not None, "the root was not forked"
        where = fork_ref(ref.path, ref.branch)
        with self._lock:
            found = self._fork_points.get(where)
        if found is None:
            try:
                parsed = json.loads(self.objects.get(where))
                found = TableRef(ref.path, parsed["parentBranch"], int(parsed["parentVersion"]))
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptData(f"{where} is not a valid branch file") from error
            with self._lock:
                self._fork_points[where] = found
        return found

    def create(
        self,
        path: str,
        schema: pa.Schema,
        properties: Mapping[str, str],
        rows: pa.Table | None = None,
    ) -> PinnedTable:
        """Create a table exclusively: of concurrent callers exactly one succeeds."""
        uri, options = self._uri(path), self.options
        with translated(f"creating {path}", committing=True):
            fragments = []
            if rows is not None and rows.num_rows:
                fragments = write_fragments(
                    rows, uri, schema=schema, storage_options=options, enable_stable_row_ids=True
                )
                hit("create.after_files")
            operation = LanceOperation.Overwrite(schema, fragments)
            require_complete_files(self.location.child(path), operation, {})
            where = self.location.child(path).path
            if self._sync is not None:
                self._sync.before_commit(where, operation, {})
            transaction = Transaction(0, operation, transaction_properties=dict(properties))
            self.counters.commits += 1
            dataset = LanceDataset.commit(
                uri,
                transaction,
                storage_options=options,
                enable_stable_row_ids=True,
                enable_v2_manifest_paths=True,
                max_retries=0,
            )
            if self._sync is not None:
                self._sync.after_commit(where, version_file(int(dataset.version)), transaction)
        return self._cache(TableRef(path, None, int(dataset.version)), dataset)

    def commit(self, staged: StagedWrite) -> PinnedTable:
        """Commit strictly: the next version follows the pinned one, or an error is raised.

        ``CommitRefused`` means that nothing was committed. ``Drift`` means that Lance rebased the
        commit to a version other than the next: it must not be published.
        """
        try:
            landed = self.commit_rebasing(staged)
        except CommitRefused:
            # After a lost response the store's client repeats the request and conflicts with its
            # own first success.
            following = staged.ref.at(staged.ref.version + 1)
            if self.has_version(following) and self.transaction(following).uuid == staged.uuid:
                return self.open(following)
            raise
        if landed.ref.version != staged.ref.version + 1:
            raise Drift(
                f"{staged.ref.path} moved from version {staged.ref.version} while it was being "
                f"written; this write landed at version {landed.ref.version}",
                details={"path": staged.ref.path, "expected": staged.ref.version + 1},
            )
        return landed

    def commit_rebasing(self, staged: StagedWrite) -> PinnedTable:
        """Commit with Lance's rebase: for ``__manifest``, whose head row detects conflicts."""
        pinned = self.open(staged.ref)
        where = self.location.child(staged.ref.dataset_path)
        with translated(f"checking the files written to {staged.ref.path}"):
            require_complete_files(where, staged.transaction.operation, pinned.fragments)
            if self._sync is not None:
                operation = staged.transaction.operation
                self._sync.before_commit(where.path, operation, pinned.fragments)
        self.counters.commits += 1
        with translated(f"committing {staged.ref.path}", committing=True):
            dataset = LanceDataset.commit(
                pinned.private_dataset(),
                staged.transaction,
                max_retries=0,
                storage_options=self.options,
            )
            if self._sync is not None:
                made = version_file(int(dataset.version))
                self._sync.after_commit(where.path, made, staged.transaction)
        return self._cache(staged.ref.at(int(dataset.version)), dataset)

    def fork(self, ref: TableRef, name: str) -> TableRef:
        """Create a physical branch at ``ref``; ``name`` is never reused."""
        hit("fork.before_ref")
        self.counters.commits += 1
        with translated(f"forking {ref.path}", committing=True):
            self.open(ref).private_dataset().create_branch(
                name,
                reference=ref.version if ref.branch is None else (ref.branch, ref.version),
                storage_options=self.options,
            )
            if self._sync is not None:
                self._sync.after_fork(self.location.child(ref.path).path, name)
        hit("fork.after_ref")
        return TableRef(ref.path, name, ref.version)

    def drop_fork(self, path: str, name: str) -> None:
        """Remove a physical branch with its files; idempotent.

        Done object by object: Lance's own deletion refuses a partially deleted branch.
        """
        self.objects.delete(fork_ref(path, name))
        self.objects.delete_prefix(f"{path}/tree/{name}")

    def evict(self, path: str) -> None:
        """Evict the cached handles of a table, after its files were removed or rewritten."""
        self._handles.invalidate(lambda ref: ref.path == path)

    def _opened(self, ref: TableRef, doing: str, version: int | None) -> lance.LanceDataset:
        """Open a dataset whose files are all in this graph; ``version`` None is the newest.

        A fork in a moved or copied graph refers to files of another location: it is relocated with
        all others if this store may do so, and refused otherwise.
        """
        for _ in range(RELOCATIONS_MAX):
            self.counters.opens += 1
            with translated(doing):
                dataset = lance.dataset(
                    self._uri(ref.dataset_path),
                    version=version,
                    session=lance_session(),
                    storage_options=self.options,
                )
            root = None if ref.branch is None else foreign_root(dataset, ref.path, self.location)
            if root is None:
                return dataset
            if self.relocates:
                relocate(self.objects)
            elif self.rebases:
                return rebased(dataset, ref.path, self.location, lance_session(), self.options)
            else:
                raise graph_moved(self.location, root)
        raise Contention(
            f"{ref.path} is being written under another location of the graph, {root}",
            remedy="Access the graph by one path at a time.",
        )

    def _uri(self, path: str) -> str:
        return self.location.child(path).uri

    def _cache(self, ref: TableRef, dataset: Any, generation: int | None = None) -> PinnedTable:
        """Cache a handle, unless handles were invalidated while it was opened."""
        pinned = PinnedTable(ref, dataset, self.counters)
        self._handles.put(ref, pinned, generation=generation)
        return pinned
