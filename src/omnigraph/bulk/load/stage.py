"""The first step of a load, on executors: read some parts, check and stage their rows.

Reading and the checks of single rows are those of a load in process. Rows are written to data files
of the table that no version refers to yet. Rows that depend on others (the last row of an id wins,
or the replaced row keeps some values) are deferred: they are shuffled by id and written by
``bucket_checks``. Violations are reported to the driver, which decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.assign import AssignedProperties
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.bloom_filter import BloomFilterBuilder
from omnigraph.bulk.load.hot_values import fold_hot_values
from omnigraph.bulk.load.input_parts import BUFFER_BYTES, InputPart, lines_before, read_part
from omnigraph.bulk.load.match_stored import CONTENT, null_positions, with_content
from omnigraph.bulk.load.shuffle import ShuffleFile, ShuffleWriter
from omnigraph.constraints import COUNT, FILE, LINE, NULLED, VIOLATIONS_SHOWN_MAX, Report
from omnigraph.constraints.canonical import tuple_keys
from omnigraph.constraints.edge_checks import ends
from omnigraph.constraints.row_checks import check_required, check_values
from omnigraph.ingest.identify import Identified, identify
from omnigraph.ingest.key_order import Order, Orders, possible_orders
from omnigraph.ingest.load import LoadMode
from omnigraph.ingest.row_collector import PLACE_BITS, RowCollector, places
from omnigraph.ingest.upsert import check_given
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import placed_ulids
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.entity_rows import with_defaults
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.rows import write_rows
from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore
from omnigraph.storage.objects.store import ObjectStore

FINAL: Final = "#final"
"""Column that is true for the last row of an id, when an id occurs several times."""

UNBOUNDED: Final = 1 << 62


@dataclass(frozen=True)
class LoadContext:
    """Everything that the tasks of one load share: a picklable value."""

    graph: GraphStorage
    operation_id: str
    schema: AcceptedSchema
    mode: LoadMode
    policy: BlobPolicy
    targets: Mapping[str, TableRef]
    buckets: int
    columns: Mapping[str, str] | None = None
    shown_max: int = VIOLATIONS_SHOWN_MAX
    assigned: Mapping[str, AssignedProperties] | None = None
    """The properties to set, by type key; None when whole rows are loaded."""
    deferred: frozenset[str] = frozenset()
    """Types whose rows with ids are written after they are joined with the stored rows."""
    filtered_types: frozenset[str] = frozenset()
    """Types with stored rows, for which a Bloom filter of ids is built."""
    folds: bool = True
    """Whether rows of hot values are folded before the shuffle."""
    orders: Orders = field(default_factory=dict)
    """The property order of composite keys in the input, where it differs from the schema."""

    @property
    def matches_edges(self) -> bool:
        """Whether edges without id are compared by content."""
        return self.mode == "upsert" or (self.mode == "merge" and self.assigned is None)

    @property
    def prefix(self) -> str:
        return f"_staging/{self.operation_id}"

    @cached_property
    def objects(self) -> ObjectStore:
        return self.graph.objects()

    @cached_property
    def tables(self) -> TableStore:
        return self.graph.tables()

    def target(self, key: str) -> PinnedTable:
        return self.tables.open(self.targets[key])

    def __getstate__(self) -> dict[str, Any]:
        opened = ("objects", "tables")
        return {name: value for name, value in self.__dict__.items() if name not in opened}


@dataclass(frozen=True, slots=True)
class StageTask:
    """The input of one task: a part of a file, or some whole files.

    ``quarantined_lines``: lines that are skipped, by part.
    """

    parts: tuple[InputPart, ...]
    quarantined_lines: Mapping[int, frozenset[int]] = field(default_factory=dict)


@dataclass(slots=True)
class StagedPart:
    """The result of one task. ``given`` counts the rows that have an id or a key."""

    part: int
    """The number of its first part."""
    begins_file: bool
    lines: int = 0
    """The lines of its part, if it is one part of a file."""
    rows: dict[str, int] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    fragments: dict[str, list[Any]] = field(default_factory=dict)
    unread: Report = field(default_factory=Report)
    broken: Report = field(default_factory=Report)
    shuffled: list[ShuffleFile] = field(default_factory=list)
    """One object, or several when the input did not fit into memory at once."""
    orders: dict[str, frozenset[Order]] = field(default_factory=dict)
    """Possible property orders of composite keys, where ids differ from the schema's order."""
    folded: bool = False
    """Whether rows of hot values were folded before the shuffle."""
    filter_path: str | None = None
    """The object with the Bloom filters of this task."""


def stage_parts(context: LoadContext, task: StageTask) -> StagedPart:
    """Read and stage some parts (task)."""
    first = task.parts[0]

    def read(collector: RowCollector, pause: Callable[[], None]) -> int:
        return sum(read_part(part, collector, context.columns, pause) for part in task.parts)

    return Stager(
        context,
        StagedPart(first.number, first.begins_file),
        parts={part.number: part.name for part in task.parts},
        quarantined_lines=task.quarantined_lines,
        lines_before=lambda: 0 if first.is_whole else lines_before(first),
    ).run(read)


class Stager:
    """Stages the rows that a reader collects, in batches."""

    def __init__(
        self,
        context: LoadContext,
        result: StagedPart,
        *,
        parts: Mapping[int, str],
        quarantined_lines: Mapping[int, frozenset[int]] | None = None,
        lines_before: Callable[[], int] = lambda: 0,
    ) -> None:
        """``parts``: the names of the parts by number, in the order in which they are read."""
        self._context = context
        self._result = result
        self._parts = np.array(list(parts), dtype=np.int32)
        self._quarantined = {
            (parts[number], line)
            for number, lines in (quarantined_lines or {}).items()
            for line in lines
        }
        self._quarantined_places = np.array(
            [
                list(parts).index(number) << PLACE_BITS | line
                for number, lines in (quarantined_lines or {}).items()
                for line in lines
            ],
            dtype=np.int64,
        )
        self._filters = BloomFilterBuilder(context.filtered_types)
        result.unread.shown_max = result.broken.shown_max = context.shown_max
        self._collector = RowCollector(
            context.schema,
            result.unread,
            context.policy,
            bytes_max=UNBOUNDED,  # batches are staged at BUFFER_BYTES
            lines_before=lines_before,
            marks_nulls=context.mode == "upsert",
        )

    def run(self, read: Callable[[RowCollector, Callable[[], None]], int]) -> StagedPart:
        """Read and stage all rows; ``read`` calls its second argument after every batch."""
        self._result.lines = read(self._collector, self._stage_full_batch)
        self._stage_batch()
        context = self._context
        self._result.filter_path = self._filters.write(context.objects, f"{context.prefix}/filters")
        self._drop_violations()
        return self._result

    def _without_quarantined(self, rows: pa.Table) -> pa.Table:
        if not len(self._quarantined_places):
            return rows
        return rows.filter(pa.array(~np.isin(places(rows), self._quarantined_places)))

    def _drop_violations(self) -> None:
        """Drop the violations of quarantined lines."""
        report = self._result.unread
        if self._quarantined and report:
            kept = [v for v in report.shown if (v.file, v.line) not in self._quarantined]
            report.shown, report.total = kept, len(kept)
            report.rules = {violation.rule for violation in kept}

    def _stage_full_batch(self) -> None:
        if self._collector.bytes_held > BUFFER_BYTES:
            self._stage_batch()

    def _stage_batch(self) -> None:
        result, schema = self._result, self._context.schema
        rows = {
            key: self._without_quarantined(table) for key, table in self._collector.finish().items()
        }
        given = {key: table["id"].is_valid() for key, table in rows.items()}
        assigned = self._context.assigned
        found = Identified(rows)
        if assigned is None:
            found = identify(
                schema,
                rows,
                result.unread,
                strict=True,
                make=self._ids,
                orders=self._orders(rows),
                names_nodes=self._context.mode == "upsert",
            )
        shuffle = ShuffleWriter(self._context.buckets)
        for key in sorted(found.rows):
            owner, table = schema.type(key), found.rows[key]
            result.broken.files = result.unread.files
            mask = None if owner.key_properties else given[key]
            if self._context.mode == "upsert":
                check_given(owner, table, mask, result.broken)
            else:
                only = None if assigned is None else assigned[key].properties
                check_required(owner, table, result.broken, only=only)
            check_values(owner, table, result.broken)
            result.rows[key] = result.rows.get(key, 0) + table.num_rows
            if "required" in result.broken.rules or (result.unread and not self._quarantined):
                continue  # the load fails: later checks are skipped
            self._stage_type(owner, self._with_parts(table), mask, shuffle)
        written = shuffle.write(self._context.objects, f"{self._context.prefix}/keys")
        if written is not None:
            result.shuffled.append(written)

    def _with_parts(self, rows: pa.Table) -> pa.Table:
        """The rows with the numbers of their parts in the column ``FILE``."""
        numbers = pa.array(self._parts[rows[FILE].to_numpy()])
        return rows.set_column(rows.column_names.index(FILE), FILE, numbers)

    def _stage_type(
        self, owner: NodeType | EdgeType, rows: pa.Table, given: Any, shuffle: ShuffleWriter
    ) -> None:
        """Stage rows of one type. ``given`` is a mask of rows with an id; None means all."""
        result = self._result
        named, fresh = rows, rows.slice(0, 0)
        if given is not None:
            named, fresh = rows.filter(given), rows.filter(pc.invert(given))
        result.given[owner.key] = result.given.get(owner.key, 0) + named.num_rows
        if named.num_rows:
            shuffle.add(f"ids/{owner.key}", self._named_ids(owner, named), named["id"])
            self._filters.add(owner.key, named["id"])
        if isinstance(owner, EdgeType):
            for column, node_key in ends(owner):
                self._filters.add(node_key, rows[column])
        direct = rows
        if owner.key in self._context.deferred:
            shuffle.add(f"rows/{owner.key}", named, named["id"])
            direct = fresh
        if isinstance(owner, EdgeType) and fresh.num_rows and self._context.matches_edges:
            direct = self._shuffle_content(owner, fresh, direct, shuffle)
        generated = given is not None and not named.num_rows
        result.folded |= shuffle_values(self._context, shuffle, owner, direct, generated=generated)
        if direct.num_rows and not result.broken:
            hit("task.before_files")
            table = self._context.target(owner.key)
            written = write_rows(table, without_control_columns(direct))
            result.fragments.setdefault(owner.key, []).extend(written)
            hit("task.after_files")

    def _named_ids(self, owner: NodeType | EdgeType, named: pa.Table) -> pa.Table:
        """The ids of rows that have one; in a merge also their null columns."""
        found = named.select(["id", FILE, LINE])
        if self._context.mode != "merge" or owner.key not in self._context.filtered_types:
            return found
        if self._context.assigned is not None or owner.key in self._context.deferred:
            return found
        return found.append_column(NULLED, null_positions(owner, named))

    def _shuffle_content(
        self, edge: EdgeType, fresh: pa.Table, direct: pa.Table, shuffle: ShuffleWriter
    ) -> pa.Table:
        """Shuffle edges without id by content; returns the rows that are written at once."""
        upsert = self._context.mode == "upsert"
        if upsert:
            fresh = with_defaults(edge, fresh).drop_columns([NULLED])
        rows = with_content(edge, fresh)
        self._filters.add(f"content/{edge.key}", rows[CONTENT])
        shuffled = rows if upsert else rows.select([CONTENT])
        shuffle.add(f"fresh/{edge.key}", shuffled, rows[CONTENT])
        return direct.slice(0, 0) if upsert else direct

    def _orders(self, rows: Mapping[str, pa.Table]) -> Orders:
        """The property orders of composite keys.

        While none is known, the possible orders are recorded for the driver, which stages again
        if they differ from the order of the schema.
        """
        if self._context.orders:
            return self._context.orders
        noted, orders = self._result.orders, {}
        for key, table in rows.items():
            owner = self._context.schema.type(key)
            found = possible_orders(owner, table) if isinstance(owner, NodeType) else None
            if found:
                noted[key] = noted.get(key, found) & found
                orders[key] = next(iter(found))
        return orders

    def _ids(self, rows: pa.Table) -> pa.Array:
        """Ids made from the operation, and the part and line of each row."""
        parts, lines = self._parts[rows[FILE].to_numpy()], rows[LINE].to_numpy()
        starts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist()]
        runs = zip(starts, [*starts[1:], len(parts)], strict=True)
        made = [
            placed_ulids(self._context.operation_id, int(parts[start]), lines[start:end])
            for start, end in runs
            if start < end
        ]
        return pa.concat_arrays(made) if made else pa.array([], pa.string())


def shuffle_values(
    context: LoadContext,
    shuffle: ShuffleWriter,
    owner: NodeType | EdgeType,
    rows: pa.Table,
    *,
    generated: bool = False,
) -> bool:
    """Shuffle what is checked by value: the ends of edges, and the tuples of ``@unique``.

    Of edges only final rows are shuffled. ``generated``: all ids are new, and are left out.
    Returns whether rows of hot values were folded.
    """
    folded = False
    if not rows.num_rows:
        return folded
    marked = FINAL in rows.column_names
    if isinstance(owner, EdgeType):
        final = rows.filter(rows[FINAL]) if marked else rows
        for column, _ in ends(owner):
            names = [column, FILE, LINE] if generated else [column, "id", FILE, LINE]
            ends_ = final.select(names)
            if context.folds:
                ends_ = fold_hot_values(ends_, column, context.shown_max)
                folded |= COUNT in ends_.column_names
            shuffle.add(f"ends/{owner.key}/{column}", ends_, ends_[column])
    beside = (FILE, LINE, FINAL) if marked else (FILE, LINE)
    for number, columns in enumerate(owner.unique):
        shuffle_tuples(shuffle, f"unique/{owner.key}/{number}", owner, columns, rows, beside)
    return folded


def shuffle_tuples(
    shuffle: ShuffleWriter,
    name: str,
    owner: NodeType | EdgeType,
    columns: tuple[str, ...],
    rows: pa.Table,
    beside: tuple[str, ...] = (),
) -> None:
    """Shuffle the tuples of some columns with their ids; tuples with a null are left out."""
    keys = tuple_keys(owner, columns, rows)
    complete = pc.is_valid(keys)
    names = list(dict.fromkeys(("id", *columns, *beside)))
    shuffle.add(name, rows.select(names).filter(complete), keys.filter(complete))


def without_control_columns(rows: pa.Table) -> pa.Table:
    beside = (FILE, LINE, FINAL, NULLED, CONTENT)
    return rows.drop_columns([name for name in beside if name in rows.column_names])
