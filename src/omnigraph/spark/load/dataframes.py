"""DataFrames as input of a load: each partition is staged by the task that computes it.

Each frame holds rows of one type; columns are matched to properties by name, as in any table. This
covers every source that Spark reads: databases over JDBC, other lakehouse tables, SQL queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import InvalidInput
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.ingest.tabular import find_type, read_table
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.spark.load.stage import LoadContext, StagedPart, Stager
from omnigraph.spark.tasks import RESULT_SCHEMA, SparkTasks, Tasks, result_batch

_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class InputFrame:
    """A DataFrame with the type of its rows."""

    type_name: str
    type_key: str
    data: Any

    def shape(self) -> bytes:
        """The type and schema of the frame, which identify it in a request."""
        return f"{self.type_key}\0{self.data.schema.json()}".encode()


def is_frame(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.sql")


def has_frames(source: Any) -> bool:
    """Whether the source is, or holds, a DataFrame."""
    if isinstance(source, Mapping):
        return any(has_frames(inner) for inner in source.values())
    return is_frame(source)


def find_frames(spec: LoadSpec, schema: AcceptedSchema) -> tuple[LoadSpec, list[InputFrame]]:
    """The frames of a source, and the load without them."""
    source, frames = spec.source, []
    if is_frame(source):
        if spec.type_name is None:
            raise InvalidInput(
                "a DataFrame needs the name of its type",
                remedy="Pass type= or a mapping of types to DataFrames.",
            )
        source, named = _NOTHING, [(spec.type_name, source)]
    elif isinstance(source, Mapping):
        named = [(name, inner) for name, inner in source.items() if is_frame(inner)]
        source = {name: inner for name, inner in source.items() if not is_frame(inner)}
    else:
        return spec, []
    for name, data in named:
        frames.append(InputFrame(name, find_type(schema, name).key, data))
    return replace(spec, source=source), frames


def stage_frame(
    tasks: Tasks, context: LoadContext, frame: InputFrame, first: int
) -> list[StagedPart]:
    """Stage all partitions of a frame; ``first`` is the number of the first part."""
    assert isinstance(tasks, SparkTasks), "a DataFrame belongs to a Spark session"
    staged = frame.data.mapInArrow(_partition(context, frame, first), RESULT_SCHEMA)
    found: list[StagedPart] = tasks.collect(f"reading {frame.type_name}", staged)
    return found


def _partition(
    context: LoadContext, frame: InputFrame, first: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    name, key = f"<{frame.type_name}>", frame.type_key  # the frame itself stays on the driver

    def stage_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        running = TaskContext.get()
        number = 0 if running is None else running.partitionId()
        result = StagedPart(first + number, name, begins_file=number == 0)
        stager = Stager(context, result)
        yield result_batch(
            first + number,
            lambda: stager.run(
                lambda collector, pause: _read(context, key, collector, pause, batches)
            ),
        )

    return stage_partition


def _read(
    context: LoadContext,
    key: str,
    collector: RowCollector,
    pause: Callable[[], None],
    batches: Iterator[pa.RecordBatch],
) -> int:
    owner, rows = collector.schema.type(key), 0
    collector.begin_file(f"<{owner.name}>")
    collector.occurs(key)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        read_table(collector, owner, table, context.columns, first_line=rows + 1)
        rows += batch.num_rows
        pause()
    return rows
