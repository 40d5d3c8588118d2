"""A streaming job in its own process, to be killed: loads the files of a folder.

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
    writer = graph.spark.stream(frame, "Note", mode="append", query="notes", checkpoint=checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
