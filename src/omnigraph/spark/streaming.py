"""Structured Streaming into a graph: one commit per micro-batch, exactly once across restarts.

A micro-batch is a load with an idempotency key of the query name and the batch number, recorded in
the publish that makes its rows visible. A batch that Spark repeats after a crash finds its key and
writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidInput, NotAvailable
from omnigraph.ingest.load import LoadMode, LoadResult
from omnigraph.spark.session.spark_session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Load = Callable[..., LoadResult]
Split = Callable[["DataFrame"], Mapping[str, "DataFrame"]]


def stream_writer(
    load: Load,
    frame: DataFrame,
    split: str | Split,
    *,
    mode: LoadMode,
    query: str,
    checkpoint: str | os.PathLike[str],
    **options: Any,
) -> DataStreamWriter:
    """A writer of a streaming frame; call ``start()`` on it, optionally with a trigger.

    ``load`` is the method of the graph. ``split`` is the type of the rows, or a function from a
    micro-batch to frames by type. ``query`` must be unique per checkpoint: with a new checkpoint
    and an old name, new batches would be taken for repeated ones.
    """
    if mode == "overwrite":
        raise InvalidInput(
            "a stream cannot use mode overwrite: every batch would replace the one before it",
            remedy="Use append, or upsert for rows that may be repeated.",
        )

    if is_connect(frame.sparkSession):
        raise NotAvailable(
            "a stream cannot be written over Spark Connect: "
            "its batches would be written by a process of the server",
            remedy="Run the stream in a session of its own, on this machine or on a cluster.",
        )

    def write(batch: DataFrame, number: int) -> None:
        rows = {split: batch} if isinstance(split, str) else split(batch)
        load(rows, mode=mode, idempotency_key=f"stream/{query}/{number}", **options)

    return frame.writeStream.foreachBatch(write).option("checkpointLocation", os.fspath(checkpoint))
