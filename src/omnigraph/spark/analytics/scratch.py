"""The scratch area of an analysis: where it is, and its removal.

It must be reachable by every executor: a local directory when Spark runs on this machine, else the
staging area of the graph, which cleanup protects while the analysis is alive.
"""

from __future__ import annotations

import shutil
import tempfile

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.intent import Intent
from omnigraph.bulk.scratch import Scratch
from omnigraph.catalog.repository import Repository
from omnigraph.model.ids import new_ulid
from omnigraph.settings import StorageSettings


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
