"""Scratch area of an analysis: temporary arrays and tables that tasks exchange.

It must be reachable by every executor: a local directory when Spark runs on this machine, else the
staging area of the graph, which cleanup protects while the analysis is alive.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.intent import Intent
from omnigraph.bulk.load.partitions import from_ipc, to_ipc
from omnigraph.catalog.repository import Repository
from omnigraph.model.ids import new_ulid
from omnigraph.settings import StorageSettings
from omnigraph.storage.objects.store import ObjectStore

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Scratch:
    """Named arrays and tables under one prefix. Pickled without its open store."""

    graph: GraphStorage
    prefix: str

    @cached_property
    def objects(self) -> ObjectStore:
        return self.graph.objects()

    def __getstate__(self) -> dict[str, Any]:
        return {"graph": self.graph, "prefix": self.prefix}

    def put(self, name: str, **arrays: Any) -> None:
        self.objects.put(f"{self.prefix}/{name}", pickle.dumps(arrays, protocol=5))

    def get(self, name: str) -> Arrays:
        found: Arrays = pickle.loads(self.objects.get(f"{self.prefix}/{name}"))
        return found

    def vector(self, name: str, blocks: int) -> np.ndarray[Any, Any]:
        """A vector, concatenated from all blocks."""
        return np.concatenate([self.get(f"{name}/{b}")["values"] for b in range(blocks)])

    def put_table(self, name: str, table: pa.Table) -> None:
        self.objects.put(f"{self.prefix}/{name}", to_ipc(table))

    def get_table(self, name: str) -> pa.Table:
        return from_ipc(self.objects.get(f"{self.prefix}/{name}"))

    def address(self, name: str) -> str:
        """The absolute address of an object: a local path, or a URI."""
        child = self.graph.location.child(*self.prefix.split("/"), *name.split("/"))
        return child.path if child.is_local else child.uri

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.objects.delete_prefix(f"{self.prefix}/{name}")


class ScratchArea:
    """Creates a scratch, and removes it on ``close``."""

    def __init__(self, repository: Repository, *, on_this_machine: bool) -> None:
        self._folder: str | None = None
        self._intent: Intent | None = None
        if on_this_machine:
            self._folder = tempfile.mkdtemp(prefix="omnigraph-analysis-")
            self.scratch = Scratch(GraphStorage(self._folder, StorageSettings()), "data")
            return
        self._intent = Intent(repository, new_ulid())
        self._intent.declare()
        self.scratch = Scratch(GraphStorage.of(repository), self._intent.prefix)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._intent is not None:
            self._intent.clear()
