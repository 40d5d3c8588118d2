"""The result of one algorithm over one snapshot, and what can be done with it.

The result is kept in the scratch area, one table per type and block, until the analysis is closed.
It can be read as a DataFrame or an Arrow table, saved to a file, or written back as properties of
the nodes in one commit.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.bulk.assign import AssignedProperties, PropertyAssignment, require_assignable
from omnigraph.bulk.load.input_parts import InputPart
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.rows import Commit
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import NodeType
from omnigraph.model import arguments
from omnigraph.spark.analytics.network import Network, Selection
from omnigraph.spark.analytics.result_file import save
from omnigraph.spark.analytics.scratch import ScratchArea
from omnigraph.spark.analytics.sweeps import AlgorithmResult
from omnigraph.spark.session.spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOP_ROWS_MAX: Final = 100
"""Rows with the first values that are kept on the driver, for ``top``."""

Write = Callable[[PropertyAssignment, Mapping[str, Any]], Commit | None]


@dataclass(frozen=True, slots=True)
class ResolveIdsTask:
    """Maps the node numbers of one block back to types and ids."""

    scratch: Scratch
    selection: Selection
    block: int
    columns: Mapping[str, str]
    marks: Mapping[str, Any]
    descending: bool


def resolve_ids(task: ResolveIdsTask) -> tuple[list[int], list[tuple[Any, ...]]]:
    """Write the result of a block (task); returns the rows per type and the first by value."""
    names = task.scratch.get_table(f"names/{task.block}")
    columns = {
        name: _with_nulls(task.scratch.get(f"{place}/{task.block}")["values"], task.marks.get(name))
        for name, place in task.columns.items()
    }
    table = pa.table({"type": names["type"], "id": names["id"], **columns})
    kinds, rows = table["type"].to_numpy(), []
    for number in range(len(task.selection.nodes)):
        own = table.filter(kinds == number).drop_columns(["type"])
        task.scratch.put_table(f"result/{number}/{task.block}", own)
        rows.append(own.num_rows)
    first = next(iter(task.columns))
    order = "descending" if task.descending else "ascending"
    best = table.sort_by([(first, order), ("type", "ascending"), ("id", "ascending")])
    return rows, [tuple(row.values()) for row in best.slice(0, TOP_ROWS_MAX).to_pylist()]


def _with_nulls(values: Any, mark: Any) -> pa.Array:
    return pa.array(values) if mark is None else pa.array(values, mask=values == mark)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a finished analysis: sizes, sweeps, convergence and statistics."""

    algorithm: str
    commit_id: str
    nodes: int
    edges: int
    sweeps: int
    converged: bool
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "commit_id": self.commit_id,
            "nodes": self.nodes,
            "edges": self.edges,
            "sweeps": self.sweeps,
            "converged": self.converged,
            "statistics": dict(self.statistics),
        }


class Analysis:
    """A finished analysis. Close it, or use it in a ``with`` block, to free its result."""

    def __init__(
        self,
        facts: Facts,
        network: Network,
        computed: AlgorithmResult,
        tasks: Tasks,
        area: ScratchArea,
        write: Write,
        *,
        descending: bool,
    ) -> None:
        self.facts = facts
        self.columns = tuple(computed.columns)
        self._selection = network.selection
        self._scratch = network.scratch
        self._write = write
        self._finalizer = weakref.finalize(self, area.close)
        specs = [
            ResolveIdsTask(
                network.scratch,
                network.selection,
                block,
                computed.columns,
                computed.marks,
                descending,
            )
            for block in range(network.blocks)
        ]
        results = tasks.run("writing results", resolve_ids, specs)
        self._pieces = [
            (number, block, rows)
            for block, (counts, _) in enumerate(results)
            for number, rows in enumerate(counts)
            if rows
        ]
        best = [row for _, rows in results for row in rows]
        best.sort(key=lambda row: _order(row, descending))
        self._top = best[:TOP_ROWS_MAX]

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the result. DataFrames and tables made of it stay."""
        self._finalizer()

    def top(self, rows: int = 10) -> list[dict[str, Any]]:
        """The first nodes by value (at most a hundred): the highest, or for distances the nearest.

        Groups are in the order of their numbers.
        """
        arguments.whole("rows", rows)
        names = ("type", "id", *self.columns)
        return [
            dict(zip(names, (self._type(row[0]).name, *row[1:]), strict=True))
            for row in self._top[:rows]
        ]

    def table(self) -> pa.Table:
        """All values as one Arrow table: ``type``, ``id`` and the columns of the algorithm."""
        return pa.concat_tables([self._empty(), *self._tables()])

    def save(self, target: str | os.PathLike[str]) -> None:
        """Write all values to a new file: ``.parquet``, ``.csv`` or ``.jsonl``."""
        save(self._tables(), self._empty().schema, arguments.path("target", target))

    def frame(self, spark: SparkSession | None = None) -> DataFrame:
        """All values as a DataFrame, which remains valid after the analysis is closed."""
        spark = spark or session()
        read, schema = _reader(self._scratch, self._addresses()), self._schema_text()
        partitions = max(len(self._pieces), 1)
        found = spark.range(0, len(self._pieces), 1, partitions).mapInArrow(read, schema)
        return found.localCheckpoint()

    def write(
        self,
        to: str | Mapping[str, str],
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
    ) -> Commit | None:
        """Write the values back as properties of the nodes, as one commit on the branch.

        ``to`` names the property, or maps columns to properties. Other properties keep the values
        they have at the time of the commit.
        """
        properties = self._properties(to)
        arguments.optional_mapping("metadata", metadata)
        written = [self._type(n) for n in sorted({number for number, _, _ in self._pieces})]
        for owner in written:
            require_assignable(owner, list(properties.values()))
        assigned = AssignedProperties(tuple(properties.values()))
        parts = [
            InputPart(
                at,
                f"<{self.facts.algorithm}>",
                address,
                None,
                "arrow",
                self._type(n).key,
                rows,
                storage=self._scratch.graph.storage,
            )
            for at, (n, address, rows) in enumerate(self._parts())
        ]
        columns = {name: properties.get(name, "") for name in self.columns}
        chosen = {
            "columns": columns,
            "message": message,
            "actor": actor,
            "metadata": {"algorithm": self.facts.algorithm, **(metadata or {})},
            "expected_head": expected_head,
            "idempotency_key": idempotency_key,
        }
        types = {owner.key: assigned for owner in written}
        return self._write(PropertyAssignment(types, tuple(parts)), chosen)

    def _properties(self, to: str | Mapping[str, str]) -> dict[str, str]:
        if isinstance(to, str):
            return {self.columns[0]: arguments.text("to", to)}
        arguments.mapping("to", to)
        unknown = [name for name in to if name not in self.columns]
        if unknown or not to:
            raise InvalidInput(
                f"{self.facts.algorithm} has no column {(unknown or [''])[0]!r}",
                remedy=f"Map one of {', '.join(self.columns)}.",
            )
        return dict(to)

    def _type(self, number: int) -> NodeType:
        return self._selection.nodes[number]

    def _addresses(self) -> list[tuple[str, str]]:
        return [(self._type(n).name, f"result/{n}/{block}") for n, block, _ in self._pieces]

    def _parts(self) -> Iterator[tuple[int, str, int]]:
        for number, block, rows in self._pieces:
            yield number, self._scratch.address(f"result/{number}/{block}"), rows

    def _tables(self) -> Iterator[pa.Table]:
        for name, address in self._addresses():
            yield _named(name, self._scratch.get_table(address))

    def _empty(self) -> pa.Table:
        return _named("", self._scratch.get_table("result/0/0")).slice(0, 0)

    def _schema_text(self) -> str:
        kinds = self._scratch.get_table("result/0/0").schema
        texts = {"int64": "bigint", "double": "double"}
        columns = (f"`{name}` {texts[str(kinds.field(name).type)]}" for name in self.columns)
        return ", ".join(("type string", "id string", *columns))


def _order(row: Sequence[Any], descending: bool) -> tuple[Any, ...]:
    value = row[2]
    if value is None:
        return (1, 0, row[0], row[1])
    return (0, -value if descending else value, row[0], row[1])


def _named(name: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, "type", pa.repeat(pa.scalar(name), table.num_rows))


def _reader(scratch: Scratch, addresses: list[tuple[str, str]]) -> Any:
    """A function for ``mapInArrow``: numbers of result tables to their rows."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, address = addresses[number]
                yield from _named(name, scratch.get_table(address)).to_batches()

    return read
