"""Checks of one published table version: it opens, has the right transaction and intact files.

Lance records the size of every data and index file, which detects truncated and extended files.
Omnigraph records digests of files on local disks, up to a size, which detect changed files.
Deletion files contain their own length.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.errors import GraphMoved, OmnigraphError
from omnigraph.maintenance.fsck.findings import Damage, FsckFinding
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.files.checksums import digest
from omnigraph.storage.lance.files.completeness import is_complete_deletion_file
from omnigraph.storage.lance.files.table_files import BranchObjects
from omnigraph.storage.lance.tables import PinnedTable
from omnigraph.storage.objects.store import ObjectInfo
from omnigraph.transaction.recovery.external_drift import external_drift
from omnigraph.transaction.recovery.pending import PendingRecords


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One type of one branch, with its stored files and recorded digests."""

    repository: Repository
    branch: Branch
    pin: TablePin
    stored: Mapping[str | None, BranchObjects]
    digests: Mapping[str, int]

    def found(self, damage: Damage, message: str) -> FsckFinding:
        return FsckFinding(self.branch.name, damage, self.pin.key, message)

    def open(self) -> tuple[PinnedTable | None, list[FsckFinding]]:
        """Open the published version; None if it cannot be read."""
        store, ref = self.repository.tables, self.pin.ref
        try:
            table = store.open(ref)
            made = {store.transaction(ref).uuid or ""}
            if self.pin.transaction not in made:
                made |= self._made_source()
            rows = table.rows
            if not store.has_version(ref):
                raise TableNotFound(f"version {ref.version} is missing")
        except TableNotFound as problem:
            return None, [self.found(Damage.VERSION_MISSING, problem.message)]
        except GraphMoved as problem:
            return None, [self.found(Damage.READS_ELSEWHERE, problem.message)]
        except OmnigraphError as problem:
            return None, [self.found(Damage.VERSION_UNREADABLE, problem.message)]
        problems = []
        if self.pin.transaction not in made:
            message = f"it was made by transaction {min(made)}, not {self.pin.transaction}"
            problems.append(self.found(Damage.WRONG_VERSION, message))
        if rows != self.pin.rows:
            message = f"{rows} rows are stored, {self.pin.rows} were published"
            problems.append(self.found(Damage.ROW_COUNT, message))
        return table, problems

    def _made_source(self) -> set[str]:
        """The transaction of the version that this one is an unchanged fork of.

        A reset publishes forks of older versions under their transactions. If a cleanup has removed
        the older version since, there is nothing to compare with.
        """
        store, ref = self.repository.tables, self.pin.ref
        if ref.branch is None or store.fork_point(ref).version != ref.version:
            return set()
        source = store.fork_point(ref)
        if not store.has_version(source):
            return {self.pin.transaction}
        return {store.transaction(source).uuid or ""}

    def drift(self, records: PendingRecords) -> Iterator[FsckFinding]:
        """Check for a newer version that neither is published nor belongs to a running write."""
        drift = external_drift(self.repository, records, self.branch, self.pin)
        if drift is not None:
            message = f"version {drift.newest.version} exists, {self.pin.ref.version} is published"
            yield self.found(Damage.DRIFT, message)

    def files(self, table: PinnedTable) -> Iterator[FsckFinding]:
        """Check that every file of the version exists and is intact."""
        for fragment_id, fragment in table.fragments.items():
            for file in fragment.files:
                yield from self._data(file.path, file.file_size_bytes)
            if fragment.deletion_file is not None:
                yield from self._deletions(fragment.deletion_file, fragment_id)
        yield from self._indexes(table)

    def _data(self, name: str, size: int | None) -> Iterator[FsckFinding]:
        infos = self._stored(f"data/{name.removesuffix('.lance')}")
        main = [info for info in infos if info.path.endswith(".lance")]
        if not main:
            yield self.found(Damage.FILE_MISSING, f"data/{name} is missing")
            return
        if size is not None and main[0].size != size:
            message = f"{main[0].path} has {main[0].size} bytes instead of {size}"
            yield self.found(Damage.FILE_SIZE, message)
            return
        known = self.digests.get(name)
        location = self.repository.location
        if known is None or not location.is_local:
            return
        if digest(os.path.join(location.path, main[0].path)) != known:
            message = f"{main[0].path} is not the file that was written"
            yield self.found(Damage.FILE_DIGEST, message)

    def _deletions(self, deletion: Any, fragment_id: int) -> Iterator[FsckFinding]:
        name = deletion.path(fragment_id)
        infos = self._stored(name)
        data = self.repository.objects.get(infos[0].path) if infos else b""
        if not infos or not is_complete_deletion_file(name, data, deletion.num_deleted_rows):
            yield self.found(Damage.DELETIONS_DAMAGED, f"{name} is missing or truncated")

    def _indexes(self, table: PinnedTable) -> Iterator[FsckFinding]:
        for index in table.dataset.describe_indices():
            for part in index.segments:
                infos = self._stored(f"_indices/{part.uuid}")
                size = sum(info.size for info in infos)
                if not infos:
                    message = f"the files of index {index.name} are missing"
                    yield self.found(Damage.INDEX_MISSING, message)
                elif part.size_bytes and size != part.size_bytes:
                    message = f"index {index.name} has {size} bytes instead of {part.size_bytes}"
                    yield self.found(Damage.INDEX_SIZE, message)

    def _stored(self, name: str) -> list[ObjectInfo]:
        return [info for holdings in self.stored.values() for info in holdings.files.get(name, ())]
