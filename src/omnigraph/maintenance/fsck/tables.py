"""Checks of one published version: it opens, it is the one, and its files are whole.

Sizes are recorded by Lance with every data and index file: they show files that are cut off or have
grown. Digests are recorded by Omnigraph for files written on a local disk, up to a size: they show
files that were changed or swapped. Lists of deleted rows say themselves whether they are whole.
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
from omnigraph.maintenance.fsck.findings import Damage, Finding
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.files.checksums import digest
from omnigraph.storage.lance.files.presence import deletions_are_whole
from omnigraph.storage.lance.files.table_files import Holdings
from omnigraph.storage.lance.tables import PinnedTable
from omnigraph.storage.objects.store import ObjectInfo
from omnigraph.transaction.recovery.pending import PendingRecords
from omnigraph.transaction.recovery.unexplained_drift import uncovered_drift


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One type of one branch, with what is known about its files."""

    repository: Repository
    branch: Branch
    pin: TablePin
    stored: Mapping[str | None, Holdings]
    digests: Mapping[str, int]

    def found(self, damage: Damage, message: str) -> Finding:
        return Finding(self.branch.name, damage, self.pin.key, message)

    def open(self) -> tuple[PinnedTable | None, list[Finding]]:
        """The published version, if it can be read at all."""
        store, ref = self.repository.tables, self.pin.ref
        try:
            table = store.open(ref)
            made = {store.transaction(ref).uuid or ""}
            if self.pin.transaction not in made:
                made |= self._made_source()
            rows = table.rows
            if not store.has_version(ref):
                raise TableNotFound(f"version {ref.version} is gone")
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
        """Who made the version that this one is nothing but a fork of.

        A reset publishes forks of older versions as they are, under the transactions of those. A
        cleanup may have removed the older version since; then there is nothing to compare with.
        """
        store, ref = self.repository.tables, self.pin.ref
        if ref.branch is None or store.fork_point(ref).version != ref.version:
            return set()
        source = store.fork_point(ref)
        if not store.has_version(source):
            return {self.pin.transaction}
        return {store.transaction(source).uuid or ""}

    def drift(self, records: PendingRecords) -> Iterator[Finding]:
        """Whether the type moved without being published, and nobody is at it."""
        drift = uncovered_drift(self.repository, records, self.branch, self.pin)
        if drift is not None:
            message = f"version {drift.newest.version} exists, {self.pin.ref.version} is published"
            yield self.found(Damage.DRIFT, message)

    def files(self, table: PinnedTable) -> Iterator[Finding]:
        """Every file that the version names is there and whole."""
        for fragment_id, fragment in table.fragments.items():
            for file in fragment.files:
                yield from self._data(file.path, file.file_size_bytes)
            if fragment.deletion_file is not None:
                yield from self._deletions(fragment.deletion_file, fragment_id)
        yield from self._indexes(table)

    def _data(self, name: str, size: int | None) -> Iterator[Finding]:
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

    def _deletions(self, deletion: Any, fragment_id: int) -> Iterator[Finding]:
        name = deletion.path(fragment_id)
        infos = self._stored(name)
        data = self.repository.objects.get(infos[0].path) if infos else b""
        if not infos or not deletions_are_whole(name, data, deletion.num_deleted_rows):
            yield self.found(Damage.DELETIONS_DAMAGED, f"{name} is missing or not whole")

    def _indexes(self, table: PinnedTable) -> Iterator[Finding]:
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
