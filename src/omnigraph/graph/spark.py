"""``graph.spark``: work on whole graphs, which runs on Spark when it is large."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.model import arguments
from omnigraph.model.requests import (
    AnalysisRequest,
    CommitOptions,
    EmbedRequest,
    ExportRequest,
    StateRef,
    StreamRequest,
)

if TYPE_CHECKING:
    from omnigraph.graph.backend import BulkBackend
    from omnigraph.ingest.load import LoadMode, Progress
    from omnigraph.spark.analytics.analysis import Analysis
    from omnigraph.spark.embedding.backfill import EmbedResult


class SparkJobs:
    """Analyses, embeddings, exports and streams, as ``graph.spark``.

    Small work runs in this process; large work starts a Spark session, or uses the one there is.
    """

    def __init__(self, backend: BulkBackend) -> None:
        self._backend = backend

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
        """Run a graph algorithm over a branch, or over an older state.

        Args:
            algorithm: ``pagerank``, ``components``, ``communities``, ``triangles``, ``degrees`` or
                ``distances``.
            nodes: Only nodes of these types.
            edges: Only edges of these types.
            branch: The branch, ``main`` unless given.
            at: A commit, a tag or a time instead.
            progress: Called while Spark works.
            **settings: Of ``pagerank``: ``damping``, ``tolerance``, ``sweeps_max``, ``weight``; of
                ``communities``: ``sweeps_max``; of ``distances``: ``sources``, ``direction``,
                ``weight``.

        Returns:
            The result: ``top()``, ``table()``, ``frame()``, ``save()``, and ``write()``, which
            writes the values back as properties.

        Raises:
            InvalidInput: There is no such algorithm, or it has no such setting.
            TypeNotFound: There is no such type.

        Example:
            >>> with graph.spark.analyze("degrees") as found:
            ...     found.top(1)[0]["id"]
            'ana'
        """
        request = AnalysisRequest(
            algorithm,
            arguments.optional_texts("nodes", nodes),
            arguments.optional_texts("edges", edges),
            settings,
        )
        arguments.optional_function("progress", progress)
        return self._backend.analyze(request, StateRef(branch, at), progress)

    def embed(
        self,
        branch: str = "main",
        *,
        types: Sequence[str] | None = None,
        reembed_all: bool = False,
        commit_every: int | None = None,
        batch: int = 64,
        rate: float | None = None,
        message: str | None = None,
        actor: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> EmbedResult:
        """Compute the vectors of ``@embed`` properties that are missing or stale.

        The provider is the one that ``OMNIGRAPH_EMBED_PROVIDER`` names. A run that was interrupted
        is continued by the next one.

        Args:
            branch: The branch.
            types: Only nodes of these types.
            reembed_all: Compute all vectors again.
            commit_every: Make a commit after this many nodes, instead of one at the end.
            batch: Texts per request.
            rate: The most requests per second.
            message: Kept with the commit.
            actor: The author; otherwise the one the graph was opened with.
            progress: Called while Spark works.

        Returns:
            How many vectors were computed, and the commits.

        Raises:
            BranchNotFound: There is no such branch.
            EmbeddingFailure: The provider refused, or does not answer.
            ReadOnly: The handle is read-only.

        Example:
            >>> graph.spark.embed().total
            0
        """
        request = EmbedRequest(
            branch,
            arguments.optional_texts("types", types),
            arguments.truth("reembed_all", reembed_all),
            commit_every,
            batch,
            rate,
        )
        arguments.optional_function("progress", progress)
        return self._backend.embed(request, CommitOptions(message, actor), progress)

    def export(
        self,
        target: str | os.PathLike[str],
        *,
        format: str = "ndjson",
        branch: str | None = None,
        at: str | None = None,
        types: Sequence[str] | None = None,
    ) -> dict[str, int]:
        """Write a branch, or an older state, to a new directory, in parallel.

        It runs on threads of this process; an export to an object store runs on the cluster, where
        one is named or at hand. ``_manifest.json`` lists the files and is written last.

        Args:
            target: The directory, or a URI of an object store.
            format: ``ndjson``, ``parquet``, ``csv`` or ``arrow`` (IPC files).
            branch: The branch, ``main`` unless given.
            at: A commit, a tag or a time instead.
            types: Only these types.

        Returns:
            The number of entities per type key.

        Raises:
            AlreadyExists: The directory is not empty.
            InvalidInput: There is no such format, or the directory cannot be made.
            TypeNotFound: There is no such type.

        Example:
            >>> graph.spark.export("people-export")["node:Person"]  # doctest: +SKIP
            2
        """
        request = ExportRequest(
            arguments.path("target", target),
            StateRef(branch, at),
            format,
            arguments.optional_texts("types", types),
        )
        return self._backend.export(request)

    def stream(
        self,
        frame: Any,
        split: str | Callable[[Any], Mapping[str, Any]],
        *,
        mode: LoadMode,
        query: str,
        checkpoint: str | os.PathLike[str],
        branch: str = "main",
        columns: Mapping[str, str] | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> Any:
        """A writer of a streaming DataFrame: one commit per micro-batch, exactly once.

        Args:
            frame: A streaming DataFrame.
            split: The type of the rows, or a function from a micro-batch to a mapping of types to
                frames.
            mode: ``append``, ``upsert`` or ``merge``, as for ``Graph.load``.
            query: The permanent name of the stream. Micro-batches are recognised by it.
            checkpoint: The checkpoint directory of Spark.
            branch: The branch.
            columns: The property of each column, as for ``Graph.load``.
            actor: The author; otherwise the one the graph was opened with.
            message: Kept with the commits.

        Returns:
            A ``DataStreamWriter``; call ``start()`` on it.

        Raises:
            InvalidInput: The mode is ``overwrite``.
            NotAvailable: The session is one of Spark Connect.
            ReadOnly: The handle is read-only.

        Example:
            >>> writer = graph.spark.stream(
            ...     frame, "Person", mode="upsert", query="people", checkpoint="checkpoints/people"
            ... )  # doctest: +SKIP
            >>> writer.start()  # doctest: +SKIP
        """
        request = StreamRequest(
            mode, query, arguments.path("checkpoint", checkpoint), branch, columns
        )
        return self._backend.stream(frame, split, request, CommitOptions(message, actor))
