"""DataFrames as input of a load: each partition is staged by the task that computes it.

Each frame holds rows of one type; columns are matched to properties by name, as in any table. This
covers every source that Spark reads: databases over JDBC, other lakehouse tables, SQL queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from omnigraph.bulk.load.stage import LoadContext, StagedPart, Stager
from omnigraph.bulk.tasks import Tasks
from omnigraph.errors import InvalidInput
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.ingest.tabular import find_type, read_table
from omnigraph.lang.schema import AcceptedSchema

_NOTHING: Final[Mapping[str, Any]] = {}

Staged = TypeVar("Staged")


@dataclass(frozen=True, slots=True)
class InputFrame:
    """A DataFrame with the type of its rows."""

    type_name: str
    type_key: str
    data: Any

    @property
    def name(self) -> str:
        """What messages say instead of the name of a file."""
        return f"<{self.type_name}>"

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


@runtime_checkable
class FrameTasks(Protocol):
    """A runner that also computes DataFrames: ``SparkTasks``."""

    def map_partitions(
        self,
        name: str,
        frame: Any,
        function: Callable[[int, Iterator[pa.RecordBatch]], Staged],
    ) -> list[Staged]:
        """The results of a function of the number and the rows of each partition."""


def stage_frame(
    tasks: Tasks, context: LoadContext, frame: InputFrame, first: int
) -> list[StagedPart]:
    """Stage all partitions of a frame; ``first`` is the number of the first part."""
    assert isinstance(tasks, FrameTasks), "a DataFrame belongs to a Spark session"
    stage = _stage_partition(context, frame.name, frame.type_key, first)
    return tasks.map_partitions(f"reading {frame.type_name}", frame.data, stage)


def _stage_partition(
    context: LoadContext, name: str, key: str, first: int
) -> Callable[[int, Iterator[pa.RecordBatch]], StagedPart]:
    def stage(number: int, batches: Iterator[pa.RecordBatch]) -> StagedPart:
        result = StagedPart(first + number, begins_file=number == 0)
        stager = Stager(context, result, parts={first + number: name})
        return stager.run(lambda collector, pause: _read(context, key, collector, pause, batches))

    return stage


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
