"""Structured Streaming into a graph: one commit per micro-batch, exactly once across restarts.

A micro-batch is an ordinary load with an idempotency key made of the query's id and the batch's
number, which is recorded in the very publish that makes the rows visible. A batch that Spark runs
again after a crash, from its checkpoint, finds its key and writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidInput, NotAvailable
from omnigraph.ingest.load import LoadResult, Mode
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
    mode: Mode,
    query: str,
    checkpoint: str | os.PathLike[str],
    **options: Any,
) -> DataStreamWriter:
    """A writer of a streaming frame; call ``start()`` on it, with a trigger if there is to be one.

    ``load`` is the method of the graph. ``split`` is the type of the rows, or a function that makes
    a mapping of types to frames of a micro-batch. ``query`` names the stream for ever: the same
    name with another checkpoint would take new batches for old ones.
    """
    if mode == "overwrite":
        raise InvalidInput(
            "a stream cannot overwrite: every batch would replace the one before it",
            remedy="Use append, or upsert for rows that may come again.",
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
