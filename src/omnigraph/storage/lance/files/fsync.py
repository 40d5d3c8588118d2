"""fsync of table files, so that commits survive power loss.

Lance never syncs local files. With durability ``fsync`` the files that a commit refers to are
synced before it, with their directories, and the files of the new version after it. Object stores
are durable once they acknowledge. Readers never sync.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.storage.lance.files.completeness import added_files
from omnigraph.storage.objects.local_files import sync_directory, sync_file

VERSION_HINT = "_versions/latest_version_hint.json"  # Lance's hint to the newest version


class TableSync:
    """Syncs the tables of one graph on a local disk. ``dataset`` is a table's own directory."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._durable: set[str] = set()  # directories whose entries this process has synced

    def before_commit(self, dataset: str, operation: Any, known: Mapping[int, Any]) -> None:
        """Sync the files that an operation adds; no version refers to them yet."""
        names = [file.name for file in added_files(operation, known)]
        # Large blobs have separate files, and not every index lists its files.
        folders = [name.removesuffix(".lance") for name in names if name.endswith(".lance")]
        folders += [f"_indices/{one.uuid}" for one in getattr(operation, "new_indices", None) or ()]
        names += [f"{folder}/{name}" for folder in folders for name in _names(dataset, folder)]
        self._sync(dataset, set(names))

    def after_commit(self, dataset: str, version_file: str, transaction: Any) -> None:
        """Sync the files that make a version: its transaction and its manifest."""
        made = [f"_transactions/{transaction.read_version}-{transaction.uuid}.txn"]
        made.append(f"_versions/{version_file}")
        if os.path.exists(os.path.join(dataset, VERSION_HINT)):
            made.append(VERSION_HINT)
        self._sync(dataset, made)

    def after_fork(self, dataset: str, name: str) -> None:
        """Sync a new physical branch: its first version and its ref."""
        folders = [f"tree/{name}/{folder}" for folder in ("_versions", "_transactions")]
        made = [f"{folder}/{n}" for folder in folders for n in _names(dataset, folder)]
        self._sync(dataset, [*made, f"_refs/branches/{name}.json"])

    def _sync(self, dataset: str, names: Iterable[str]) -> None:
        """Sync files first, then their directories, up to the graph's own."""
        paths = [os.path.join(dataset, name) for name in names]
        for path in paths:
            sync_file(path)
        for directory in sorted({os.path.dirname(path) for path in paths}):
            sync_directory(directory)
            while directory not in self._durable and len(directory) > len(self._root):
                self._durable.add(directory)
                directory = os.path.dirname(directory)
                sync_directory(directory)


def _names(dataset: str, folder: str) -> list[str]:
    try:
        return os.listdir(os.path.join(dataset, folder))
    except FileNotFoundError:
        return []
