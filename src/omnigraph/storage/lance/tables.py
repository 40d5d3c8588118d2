"""Lance tables: pinned reads, and the only module that may move a table's HEAD.

Every other module reads through ``PinnedTable`` and stages through ``storage.lance.staging``;
staging writes files that nothing refers to. ``TableStore`` turns staged work into a new version,
and does so strictly: HEAD moves from the pinned version to exactly the next one, or the call is
refused with a typed error. A test walks the source tree and fails when another module calls one of
Lance's committing functions.

Nothing here lists a directory to find the newest version: versions are opened by number, and
whether there is a newer one is asked by looking for the next version's file.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph.errors import Contention, CorruptData, Drift
from omnigraph.model.checkpoint import checkpoint
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import CommitRefused, translate, translated
from omnigraph.storage.lance.files.fsync import TableSync
from omnigraph.storage.lance.files.presence import require_whole
from omnigraph.storage.lance.files.relocation import foreign_root, moved, relocate
from omnigraph.storage.lance.fingerprints import Fingerprints
from omnigraph.storage.lance.session import lance_session
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.store import Durability, ObjectStore

HANDLES_MAX = 512  # open handles kept per graph; each is a few KiB plus shared caches
OPERATION_PROPERTY = "omnigraph.operation"
KIND_PROPERTY = "omnigraph.kind"
ROW_ID = "_rowid"  # the column of stable row ids, where a scan is asked for it
FRAGMENT_SHIFT = 32  # a row's address is its fragment's id, shifted, and its offset in there
RELOCATIONS_MAX = 3  # of one open: a second one helps only when others write from elsewhere
DISTANCE = "_distance"  # of the column that Lance adds to what a vector search finds
HIDDEN_PREFIX = "#"  # of columns that a table keeps but shows nobody; no property is called so
_VERSION_MAX = 2**64 - 1


def operation_properties(operation_id: str, kind: str) -> dict[str, str]:
    """What every table transaction of a write carries: recovery knows it again by this."""
    return {OPERATION_PROPERTY: operation_id, KIND_PROPERTY: kind}


def version_file(version: int) -> str:
    """The name of the file that makes a version; names count down."""
    return f"{_VERSION_MAX - version:020d}.manifest"


@dataclass(frozen=True, slots=True)
class TableRef:
    """One immutable version of one table: path in the graph, physical branch, version number."""

    path: str
    branch: str | None
    version: int

    @property
    def dataset_path(self) -> str:
        """Where Lance finds it: a physical branch is a dataset of its own below the root's tree."""
        return self.path if self.branch is None else f"{self.path}/tree/{self.branch}"

    def at(self, version: int) -> TableRef:
        return TableRef(self.path, self.branch, version)


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """Files are written and a transaction is prepared; the table's HEAD has not moved."""

    ref: TableRef
    transaction: Any
    kind: str
    rows_after: int
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    removed: Fingerprints = None  # of the ids that go away

    @property
    def uuid(self) -> str:
        return str(self.transaction.uuid)


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """Who made one version of a table: what recovery needs to tell ours from theirs."""

    version: int
    uuid: str | None
    operation: str | None
    kind: str | None
    restores: int | None = None  # the older version whose content this one brought back


class Counters:
    """What this handle asked of Lance, counted for tests and for ``--profile``."""

    def __init__(self) -> None:
        self.opens = 0
        self.scans = 0
        self.probes = 0
        self.commits = 0


@dataclass(frozen=True)
class PinnedTable:
    """A table at one version. Everything it answers stays true for ever.

    Threads share ``dataset``, so only calls that Lance lets run side by side are made on it. Calls
    that borrow a dataset object mutably are made on ``private_dataset()``.
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
        """The columns that are there to be read and written; dropped ones stay hidden."""
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
        """The fragments in their order; quicker than all that is known of them."""
        return [fragment.fragment_id for fragment in self.dataset.get_fragments()]

    @cached_property
    def fragments(self) -> dict[int, Any]:
        """Fragment metadata by id, as this version lists them."""
        return {f.fragment_id: f.metadata for f in self.dataset.get_fragments()}

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

        Beside some fragments of this version, those of ``older`` ones of the same dataset can be
        read, as they were then. A small scan is quicker when ``batch_rows`` says that it is.
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
        """``id``, row id and address, and for each of the columns whether a row has a value there.

        The values themselves are not held: vectors would take far more memory than their rows.
        """
        self.counters.scans += 1
        asked = {"id": "id", **{name: f"`{name}` IS NOT NULL" for name in columns}}
        chosen = None
        if fragment_ids is not None:
            chosen = [self.dataset.get_fragment(number) for number in fragment_ids]
        with translated(f"reading {self.ref.path}"):
            return self.dataset.scanner(
                columns=asked,
                filter=filter,
                with_row_id=True,
                with_row_address=True,
                fragments=chosen,
                scan_in_order=True,
            ).to_table()

    def nearest(self, column: str, query: Any, count: int, probes: int, metric: str) -> pa.Table:
        """Rows whose vectors are near, with their vectors and addresses: from so many partitions
        of the index, and from all rows that it does not cover.
        """
        self.counters.scans += 1
        asked = {
            "column": column,
            "q": query,
            "k": count,
            "metric": metric,
            "minimum_nprobes": probes,
            "maximum_nprobes": probes,
        }
        with translated(f"searching {self.ref.path}"):
            return self.dataset.scanner(
                columns=[column, DISTANCE], nearest=asked, with_row_address=True
            ).to_table()

    def take(self, row_ids: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by their stable row ids, in that order: costs what they are, not the table."""
        self.counters.scans += 1
        with translated(f"reading {self.ref.path}"):
            wanted = self.schema.names if columns is None else list(columns)
            return self.dataset._take_rows(list(row_ids), columns=wanted)


class TableStore:
    """The tables of one graph location. Thread-safe; handles are shared and immutable."""

    def __init__(
        self, location: Location, objects: ObjectStore, durability: Durability = "process"
    ) -> None:
        self.location = location
        synced = durability == "fsync" and location.is_local
        self._sync = TableSync(location.path) if synced else None
        self.objects = objects
        self.counters = Counters()
        self.relocates = False  # whether forks that name another location may be changed
        self._handles: OrderedDict[TableRef, PinnedTable] = OrderedDict()
        self._fork_points: dict[str, TableRef] = {}
        self._forgotten = 0  # how often tables were forgotten
        self._lock = threading.Lock()

    # -- reading ------------------------------------------------------------------------------

    def open(self, ref: TableRef) -> PinnedTable:
        """The table at exactly this version."""
        with self._lock:
            pinned = self._handles.get(ref)
            if pinned is not None:
                self._handles.move_to_end(ref)
                return pinned
            forgotten = self._forgotten
        dataset = self._opened(ref, f"opening {ref.path} at version {ref.version}", ref.version)
        return self._keep(ref, dataset, forgotten)

    def open_newest(self, path: str, branch: str | None = None) -> PinnedTable:
        """The newest version, found by asking the store: for the first open of a manifest only."""
        where = TableRef(path, branch, 0)
        dataset = self._opened(where, f"opening {path}", None)
        if int(dataset.version) < 1:
            # What Lance makes of a version's file that is all zeros, as after a loss of power.
            raise CorruptData(f"opening {path}: its newest version is damaged")
        return self._keep(where.at(int(dataset.version)), dataset)

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
        """Who made this version."""
        pinned = self.open(ref)
        try:
            made = pinned.private_dataset().read_transaction(ref.version)
        except TypeError:
            # Lance cannot show native compactions that rewrote an index; none of them is ours.
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
        where = f"{ref.path}/_refs/branches/{ref.branch}.json"
        with self._lock:
            found = self._fork_points.get(where)
        if found is None:
            try:
                told = json.loads(self.objects.get(where))
                found = TableRef(ref.path, told["parentBranch"], int(told["parentVersion"]))
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptData(f"{where} does not say what was forked") from error
            with self._lock:
                self._fork_points[where] = found
        return found

    # -- the steps that move something ------------------------------------------------------------

    def create(
        self,
        path: str,
        schema: pa.Schema,
        properties: Mapping[str, str],
        rows: pa.Table | None = None,
    ) -> PinnedTable:
        """Create a table exclusively: of any number of racing callers exactly one succeeds."""
        uri, options = self._uri(path), self.location.storage_options() or None
        with translated(f"creating {path}", committing=True):
            fragments = []
            if rows is not None and rows.num_rows:
                fragments = write_fragments(
                    rows, uri, schema=schema, storage_options=options, enable_stable_row_ids=True
                )
                hit("create.after_files")
            operation = LanceOperation.Overwrite(schema, fragments)
            require_whole(self.location.child(path), operation, {})
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
        return self._keep(TableRef(path, None, int(dataset.version)), dataset)

    def commit(self, staged: StagedWrite) -> PinnedTable:
        """Move HEAD from the pinned version to the next one, or refuse.

        ``CommitRefused`` means nothing happened. ``Drift`` means that Lance rebased the commit to a
        version other than the next: the table has moved and must not be published.
        """
        try:
            landed = self.commit_rebasing(staged)
        except CommitRefused:
            # A lost answer makes the store's client repeat the request and then collide with
            # itself.
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
        """Commit where Lance lets it land: for ``__manifest``, whose head row is the guard."""
        pinned = self.open(staged.ref)
        where = self.location.child(staged.ref.dataset_path)
        with translated(f"checking what was written to {staged.ref.path}"):
            require_whole(where, staged.transaction.operation, pinned.fragments)
            if self._sync is not None:
                operation = staged.transaction.operation
                self._sync.before_commit(where.path, operation, pinned.fragments)
        self.counters.commits += 1
        with translated(f"committing {staged.ref.path}", committing=True):
            dataset = LanceDataset.commit(
                pinned.private_dataset(),
                staged.transaction,
                max_retries=0,
                storage_options=self.location.storage_options() or None,
            )
            if self._sync is not None:
                made = version_file(int(dataset.version))
                self._sync.after_commit(where.path, made, staged.transaction)
        return self._keep(staged.ref.at(int(dataset.version)), dataset)

    def fork(self, ref: TableRef, name: str) -> TableRef:
        """A new physical branch that starts as ``ref``; ``name`` is never used twice."""
        hit("fork.before_ref")
        self.counters.commits += 1
        with translated(f"forking {ref.path}", committing=True):
            self.open(ref).private_dataset().create_branch(
                name,
                reference=ref.version if ref.branch is None else (ref.branch, ref.version),
                storage_options=self.location.storage_options() or None,
            )
            if self._sync is not None:
                self._sync.after_fork(self.location.child(ref.path).path, name)
        hit("fork.after_ref")
        return TableRef(ref.path, name, ref.version)

    def drop_fork(self, path: str, name: str) -> None:
        """Remove a physical branch with its files; one that is gone already is fine.

        Done object by object: Lance's own deletion refuses what a crash left half deleted.
        """
        self.objects.delete(f"{path}/_refs/branches/{name}.json")
        self.objects.delete_prefix(f"{path}/tree/{name}")

    def forget(self, path: str) -> None:
        """Let go of the handles of a table, after its files were removed or rewritten."""
        with self._lock:
            self._forgotten += 1
            for ref in [ref for ref in self._handles if ref.path == path]:
                del self._handles[ref]

    # -- inside ------------------------------------------------------------------------------------

    def _opened(self, ref: TableRef, doing: str, version: int | None) -> lance.LanceDataset:
        """A dataset that finds all its files in this graph; the newest version for None.

        A fork of a graph that was moved or copied names the files of another location: it is
        relocated with all others if this store may do so, and refused otherwise.
        """
        for _ in range(RELOCATIONS_MAX):
            self.counters.opens += 1
            with translated(doing):
                dataset = lance.dataset(
                    self._uri(ref.dataset_path),
                    version=version,
                    session=lance_session(),
                    storage_options=self.location.storage_options() or None,
                )
            root = None if ref.branch is None else foreign_root(dataset, ref.path, self.location)
            if root is None:
                return dataset
            if not self.relocates:
                raise moved(self.location, root)
            relocate(self.objects)
        raise Contention(
            f"{ref.path} is written by a program that knows the graph as {root}",
            remedy="Use the graph under one path at a time.",
        )

    def _uri(self, path: str) -> str:
        return self.location.child(path).uri

    def _keep(self, ref: TableRef, dataset: Any, forgotten: int | None = None) -> PinnedTable:
        """Share a handle, unless it was opened before tables were forgotten last."""
        pinned = PinnedTable(ref, dataset, self.counters)
        with self._lock:
            if forgotten is not None and forgotten != self._forgotten:
                return pinned
            self._handles[ref] = pinned
            self._handles.move_to_end(ref)
            while len(self._handles) > HANDLES_MAX:
                self._handles.popitem(last=False)
        return pinned
