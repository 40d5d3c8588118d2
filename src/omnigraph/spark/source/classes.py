"""The classes that PySpark asks of a data source; they exist only where PySpark does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from omnigraph.spark.source.changes import ChangesPlan
from omnigraph.spark.source.data_source import NAME, Plan, plan_of, refuse_writing


class GraphReader(DataSourceReader):
    """Reads one type, or what has changed of it, some of it per task."""

    def __init__(self, plan: Plan | ChangesPlan) -> None:
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._plan.shares()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._plan.read(partition.value)


class GraphSource(DataSource):
    """``format("omnigraph")``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(plan_of(dict(self.options)).schema())

    def reader(self, schema: Any) -> DataSourceReader:
        return GraphReader(plan_of(dict(self.options)))

    def writer(self, schema: Any, overwrite: bool) -> Any:
        raise refuse_writing()
