"""Temporary arrays and tables that the tasks of one operation exchange: a prefix of a store.

Whoever makes a scratch removes its prefix; nothing in it is part of a graph.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.partitions import from_ipc, to_ipc
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
