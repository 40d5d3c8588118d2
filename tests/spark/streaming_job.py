"""A streaming job of its own process, to be killed: every file of a folder becomes people.

python -m tests.spark.streaming_job GRAPH FOLDER CHECKPOINT
"""

from __future__ import annotations

import sys

import omnigraph
from omnigraph.spark.session.spark_session import session, stop


def main(uri: str, folder: str, checkpoint: str) -> None:
    spark = session()
    frame = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1).json(folder)
    graph = omnigraph.open(uri)
    writer = graph.stream(frame, "Note", mode="append", query="notes", checkpoint=checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
