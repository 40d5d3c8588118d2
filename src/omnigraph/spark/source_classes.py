"""The classes that PySpark asks of a data source; they exist only where PySpark does.

A reader that defines ``pushFilters`` fails in a session that does not allow pushing down, so there
are two readers, and the session decides which one is registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from omnigraph.spark.source import NAME, Plan, plan_of, refuse_writing, sql_condition
from omnigraph.spark.source_changes import ChangesPlan

if TYPE_CHECKING:
    import pyarrow as pa


class GraphReader(DataSourceReader):
    """Reads one type, or what has changed of it, some of it per task."""

    def __init__(self, plan: Plan | ChangesPlan) -> None:
        self._plan = plan
        self._conditions: list[str] = []

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._plan.shares()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._plan.read(partition.value, " AND ".join(self._conditions) or None)


class FilteringReader(GraphReader):
    """The same, for sessions that push filters down."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        if not isinstance(self._plan, Plan):
            return filters
        taken, left = sql_condition(filters, self._plan.table().schema)
        self._conditions += taken
        return left


class GraphSource(DataSource):
    """``format("omnigraph")``."""

    reader_class: type[GraphReader] = GraphReader

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(plan_of(dict(self.options)).schema())

    def reader(self, schema: Any) -> DataSourceReader:
        return self.reader_class(plan_of(dict(self.options)))

    def writer(self, schema: Any, overwrite: bool) -> Any:
        raise refuse_writing()


class FilteringSource(GraphSource):
    reader_class = FilteringReader


def data_source(pushes_filters: bool) -> type[DataSource]:
    return FilteringSource if pushes_filters else GraphSource
