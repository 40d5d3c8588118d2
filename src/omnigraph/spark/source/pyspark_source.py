"""PySpark data source classes; importing this module requires PySpark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from omnigraph.spark.source.changes import ChangesPlan
from omnigraph.spark.source.data_source import NAME, ScanPlan, plan_of, refuse_writing


class GraphReader(DataSourceReader):
    """Reads one type, or its changes, one partition per task."""

    def __init__(self, plan: ScanPlan | ChangesPlan) -> None:
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(partition) for partition in self._plan.partitions()]

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
