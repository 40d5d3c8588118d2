"""Where the tasks of an analysis leave arrays and tables for one another.

A place that every executor reaches: a directory of this machine where Spark runs in this process,
and otherwise the staging area of the graph, which cleanup knows about.
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

from omnigraph.catalog.repository import Repository
from omnigraph.model.ids import new_ulid
from omnigraph.spark.intent import Intent
from omnigraph.spark.load.partitions import packed, unpacked
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Scratch:
    """Named arrays and tables below one prefix. Pickles as its address."""

    uri: str
    prefix: str

    @cached_property
    def objects(self) -> ObjectStore:
        return open_objects(parse_location(self.uri))

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "prefix": self.prefix}

    def put(self, name: str, **arrays: Any) -> None:
        self.objects.put(f"{self.prefix}/{name}", pickle.dumps(arrays, protocol=5))

    def get(self, name: str) -> Arrays:
        found: Arrays = pickle.loads(self.objects.get(f"{self.prefix}/{name}"))
        return found

    def vector(self, name: str, blocks: int) -> np.ndarray[Any, Any]:
        """The pieces of all blocks as one array."""
        return np.concatenate([self.get(f"{name}/{b}")["values"] for b in range(blocks)])

    def put_table(self, name: str, table: pa.Table) -> None:
        self.objects.put(f"{self.prefix}/{name}", packed(table))

    def get_table(self, name: str) -> pa.Table:
        return unpacked(self.objects.get(f"{self.prefix}/{name}"))

    def address(self, name: str) -> str:
        """Where an object is found by its own: a path of this machine, or a URI."""
        location = parse_location(self.uri)
        child = location.child(*self.prefix.split("/"), *name.split("/"))
        return child.path if child.is_local else child.uri

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.objects.delete_prefix(f"{self.prefix}/{name}")


class ScratchArea:
    """A scratch and what ends it."""

    def __init__(self, repository: Repository, *, on_this_machine: bool) -> None:
        self._folder: str | None = None
        self._intent: Intent | None = None
        if on_this_machine:
            self._folder = tempfile.mkdtemp(prefix="omnigraph-analysis-")
            self.scratch = Scratch(self._folder, "data")
            return
        self._intent = Intent(repository.objects, new_ulid())
        self._intent.declare()
        self.scratch = Scratch(repository.location.uri, self._intent.prefix)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._intent is not None:
            self._intent.clear()
