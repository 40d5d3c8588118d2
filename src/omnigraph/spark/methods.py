"""The bulk half of a graph handle that is about computing: analyses as methods.

Loads, exports and streams on Spark are methods of the writing and reading halves: they are the same
thing at another size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from omnigraph.commit.prepared import WriteInfo
from omnigraph.commit.transaction import WriteTransaction
from omnigraph.errors import InvalidInput
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import MAIN, Commit
from omnigraph.read.engine import Reader
from omnigraph.write.blobs import BlobPolicy
from omnigraph.write.committing import Committer, WriteOptions
from omnigraph.write.load import LoadSpec, Progress

if TYPE_CHECKING:
    from omnigraph.spark.analytics.analysis import Analysis
    from omnigraph.spark.assign import Assignment
    from omnigraph.spark.tasks import Tasks


class SparkMethods:
    """Mixed into ``Graph``."""

    _repository: Repository
    _transaction: WriteTransaction
    _blobs: BlobPolicy
    _reader: Reader

    def analyze(
        self,
        algorithm: str,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        branch: str | None = None,
        at: str | None = None,
        progress: Callable[[Progress], None] | None = None,
        **settings: Any,
    ) -> Analysis:
        """Run a graph algorithm over a branch, or over the state at a commit, tag or time.

        ``pagerank`` (damping, tolerance, sweeps_max, weight), ``components``, ``communities``
        (sweeps_max), ``triangles``, ``degrees`` or ``distances`` (sources, direction, weight).
        ``edges`` and ``nodes`` name the types to look at; without them all are. Large graphs are
        analysed on Spark. The result has ``frame()``, ``table()``, ``top()`` and ``write()``.
        """
        from omnigraph.spark.analytics.run import Request, analyze
        from omnigraph.spark.engine import start_tasks
        from omnigraph.spark.session import runs_here

        snapshot = self._reader.pin(branch, at)
        write_to = None if at is not None else branch or MAIN

        def writing(tasks: Tasks) -> Any:
            return lambda assignment, chosen: self._assign(
                tasks, assignment, write_to, "analyze", **chosen
            )

        return analyze(
            lambda: start_tasks(progress),
            runs_here,
            self._repository,
            snapshot,
            self._reader.schema(snapshot),
            Request(algorithm, nodes, edges, settings),
            writing,
        )

    def _assign(
        self,
        tasks: Tasks,
        assignment: Assignment,
        branch: str | None,
        kind: str,
        *,
        columns: Mapping[str, str],
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> Commit | None:
        """Set properties of nodes that exist, as one commit."""
        from omnigraph.spark.load import SparkLoad

        self._transaction.require_writable()
        if branch is None:
            raise InvalidInput(
                "the past cannot be written to",
                remedy="Analyse a branch, or make one of this commit.",
            )
        committer = Committer(self._repository, self._transaction)
        load = SparkLoad(
            LoadSpec({}, "merge", columns=columns),
            committer.attempt(branch),
            self._blobs,
            tasks,
            assignment=assignment,
        )
        info = WriteInfo(kind, actor, message, dict(metadata or {}))
        options = WriteOptions(branch, info, expected_head, idempotency_key)
        with closing(load):
            load.read()
            return load.commit(committer, options).commit
