"""DataFrames as input of a load: their partitions are staged where Spark computes them.

Each frame holds rows of one type; columns are matched to properties by name as those of any table.
This is also how everything else that Spark can read gets in: databases over JDBC, other lakehouse
tables, the result of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import InvalidInput
from omnigraph.ingest.gathered_rows import Gathered
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.tabular import find_type, read_table
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.spark.load.stage import Site, Staged, Stager
from omnigraph.spark.tasks import RESULT_SCHEMA, SparkTasks, Tasks, answer_batch

_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Frame:
    """A DataFrame with the type of its rows."""

    type_name: str
    type_key: str
    data: Any

    def shape(self) -> bytes:
        """What identifies the frame in a request."""
        return f"{self.type_key}\0{self.data.schema.json()}".encode()


def is_frame(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.sql")


def has_frames(source: Any) -> bool:
    """Whether the source is, or holds, a DataFrame."""
    if isinstance(source, Mapping):
        return any(has_frames(inner) for inner in source.values())
    return is_frame(source)


def find_frames(spec: LoadSpec, schema: AcceptedSchema) -> tuple[LoadSpec, list[Frame]]:
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
        frames.append(Frame(name, find_type(schema, name).key, data))
    return replace(spec, source=source), frames


def stage_frame(tasks: Tasks, site: Site, frame: Frame, first: int) -> list[Staged]:
    """Stage all partitions of a frame; ``first`` is the number of the first part."""
    assert isinstance(tasks, SparkTasks), "a DataFrame belongs to a Spark session"
    staged = frame.data.mapInArrow(_partition(site, frame, first), RESULT_SCHEMA)
    found: list[Staged] = tasks.collect(f"reading {frame.type_name}", staged)
    return found


def _partition(
    site: Site, frame: Frame, first: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    name, key = f"<{frame.type_name}>", frame.type_key  # the frame itself stays on the driver

    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        answer = Staged(first + number, name, begins_file=number == 0)
        stager = Stager(site, answer)
        yield answer_batch(
            first + number,
            lambda: stager.run(lambda gathered, pause: _read(site, key, gathered, pause, batches)),
        )

    return carry_out


def _read(
    site: Site,
    key: str,
    gathered: Gathered,
    pause: Callable[[], None],
    batches: Iterator[pa.RecordBatch],
) -> int:
    owner, rows = gathered.schema.type(key), 0
    gathered.begin_file(f"<{owner.name}>")
    gathered.occurs(key)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        read_table(gathered, owner, table, site.columns, first_line=rows + 1)
        rows += batch.num_rows
        pause()
    return rows
