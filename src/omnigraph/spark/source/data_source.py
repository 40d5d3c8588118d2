"""The graph as a Spark data source: ``spark.read.format("omnigraph")``.

    register(spark)
    people = (spark.read.format("omnigraph")
              .option("type", "Person").option("branch", "main").load("graphs/people"))

Options: ``type`` (a name or a key), ``branch`` or ``at`` (a commit), ``changes`` (an older state:
read the changes since), and ``columns`` (names separated by commas, since Spark has no projection
pushdown for Python sources). Filters are not pushed down: Spark keeps pushed filters with the
DataFrame, and the next query on it would silently miss rows. A query reads one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.bulk.exchange_types import spark_field, to_exchange
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.catalog.repository import Repository
from omnigraph.engine.engine import Reader
from omnigraph.errors import InvalidInput, NotAvailable, OmnigraphError, TypeNotFound
from omnigraph.ingest.tabular import find_type
from omnigraph.snapshots.entity_delta import State
from omnigraph.spark.source.changes import ChangesPlan
from omnigraph.storage.lance.tables import TableRef
from omnigraph.storage.locations import parse_location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "omnigraph"
BATCH_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class FragmentPartition:
    """The fragments that one task reads."""

    fragment_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A scan of one type in one snapshot: a picklable value."""

    graph: GraphStorage
    ref: TableRef
    columns: tuple[str, ...]

    def table(self) -> Any:
        return self.graph.table(self.ref)

    def schema(self) -> pa.Schema:
        found = self.table().schema
        return pa.schema([spark_field(found.field(name)) for name in self.columns])

    def partitions(self) -> Sequence[FragmentPartition]:
        return [FragmentPartition((number,)) for number in self.table().fragments] or [
            FragmentPartition(())
        ]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of one partition (task)."""
        assert isinstance(partition, FragmentPartition)
        table, schema = self.table(), self.schema()
        scanner = table.dataset.scanner(
            columns=list(self.columns),
            fragments=[table.dataset.get_fragment(number) for number in partition.fragment_ids],
            batch_size=BATCH_ROWS,
        )
        for batch in scanner.to_batches():
            columns = [to_exchange(column) for column in pa.Table.from_batches([batch]).columns]
            yield from pa.table(columns, list(self.columns)).cast(schema).to_batches()


def plan_of(options: Mapping[str, str]) -> ScanPlan | ChangesPlan:
    """The plan for the options of a reader."""
    uri = options.get("path")
    if not uri or "type" not in options:
        raise InvalidInput(
            "reading a graph needs its location and a type",
            remedy='Write .option("type", "Person").load("graphs/people").',
        )
    repository = Repository.open(parse_location(uri))
    reader = Reader(repository)
    snapshot = reader.pin(options.get("branch"), options.get("at"))
    schema = reader.schema(snapshot)
    names = [name.strip() for name in options.get("columns", "").split(",") if name.strip()]
    if "changes" in options:
        old, new = reader.state(options["changes"]), State(snapshot, schema)
        key = _type_of_either(old, new, options["type"])
        return ChangesPlan.of(repository, old, new, key, names)
    owner = find_type(schema, options["type"])
    every = [column.name for column in owner.columns() if not column.type.is_blob]
    unknown = [name for name in names if name not in every]
    if unknown:
        raise InvalidInput(f"{owner.name} has no column {unknown[0]!r} that can be read here")
    return ScanPlan(GraphStorage.of(repository), snapshot.pin(owner.key).ref, tuple(names or every))


def _type_of_either(old: State, new: State, name: str) -> str:
    """The key of a type that may exist in one of the states only."""
    try:
        return find_type(new.schema, name).key
    except TypeNotFound:
        return find_type(old.schema, name).key


def register(spark: SparkSession) -> None:
    """Register ``format("omnigraph")`` with a session."""
    from omnigraph.spark.source.pyspark_source import GraphSource

    spark.dataSource.register(GraphSource)


def refuse_writing() -> OmnigraphError:
    return NotAvailable(
        "the data source is read-only: a commit may need several DataFrames",
        remedy="Use graph.load({'Person': people, 'Knows': knows}, mode='append').",
    )
