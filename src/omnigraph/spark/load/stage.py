"""The first step of a load, on executors: read a part, check its rows, stage them, shelve keys.

Reading and the checks of single rows are those of a load in process. Rows are written as files
beside the table's own, which nothing refers to yet. Only where what is written depends on other
rows (of one id the last counts, or something of the replaced row stays) do they wait on the shelf
for the step that knows. Nothing here decides: what is wrong is reported, and the driver decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import FILE, LINE, NULLED, VIOLATIONS_SHOWN_MAX, Report
from omnigraph.constraints.canonical import tuple_keys
from omnigraph.constraints.edges import ends
from omnigraph.constraints.rows import check_required, check_values
from omnigraph.ingest.gathered_rows import Gathered
from omnigraph.ingest.identify import Identified, identify
from omnigraph.ingest.key_order import Order, Orders, possible_orders
from omnigraph.ingest.load import Mode
from omnigraph.ingest.upsert import check_given
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.ids import placed_ulids
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.entity_rows import with_defaults
from omnigraph.spark.assign import Assigned
from omnigraph.spark.load.bloom_filter import Asking
from omnigraph.spark.load.match_stored import CONTENT, null_positions, with_content
from omnigraph.spark.load.parts import PIECE_BYTES, Part, lines_before, read_part
from omnigraph.spark.load.shuffle import Shelf, Shelving
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.rows import write_rows
from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore

FINAL: Final = "#final"
"""Marks, beside the properties, the rows that count when an id is given several times."""

UNBOUNDED: Final = 1 << 62


@dataclass(frozen=True)
class Site:
    """Where a load works: what every task of it needs to know."""

    graph_uri: str
    operation_id: str
    schema: AcceptedSchema
    mode: Mode
    policy: BlobPolicy
    targets: Mapping[str, TableRef]
    buckets: int
    columns: Mapping[str, str] | None = None
    shown_max: int = VIOLATIONS_SHOWN_MAX
    set_aside: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Lines, by part, that are read as if they were not there."""
    assigned: Mapping[str, Assigned] | None = None
    """What is set, by type, while everything else of an entity stays; None: whole rows."""
    waiting: frozenset[str] = frozenset()
    """Types whose rows are written by the step that knows the stored ones, if they have ids."""
    asking: frozenset[str] = frozenset()
    """Types with stored rows that a check may ask for: what it asks of them is noted."""

    orders: Orders = field(default_factory=dict)
    """The orders in which the input spells composite keys, where that is not ours."""

    @property
    def matches_edges(self) -> bool:
        """Whether edges without id are compared with others: to be left out, or to be counted."""
        return self.mode == "upsert" or (self.mode == "merge" and self.assigned is None)

    @property
    def prefix(self) -> str:
        return f"_staging/{self.operation_id}"

    @cached_property
    def objects(self) -> ObjectStore:
        return open_objects(parse_location(self.graph_uri))

    @cached_property
    def tables(self) -> TableStore:
        return TableStore(parse_location(self.graph_uri), self.objects)

    def target(self, key: str) -> PinnedTable:
        return self.tables.open(self.targets[key])

    def __getstate__(self) -> dict[str, Any]:
        opened = ("objects", "tables")
        return {name: value for name, value in self.__dict__.items() if name not in opened}


@dataclass(frozen=True, slots=True)
class StageTask:
    site: Site
    part: Part


@dataclass(slots=True)
class Staged:
    """What became of one part. ``given`` counts the rows that came with an id or a key."""

    part: int
    name: str
    begins_file: bool
    lines: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    fragments: dict[str, list[Any]] = field(default_factory=dict)
    unread: Report = field(default_factory=Report)
    broken: Report = field(default_factory=Report)
    shelves: list[Shelf] = field(default_factory=list)
    orders: dict[str, frozenset[Order]] = field(default_factory=dict)
    """The orders of composite keys that this part allows, where ids are not in ours."""
    asked: str | None = None
    """The object that says which stored ids this part may ask for."""


def stage_part(task: StageTask) -> Staged:
    """Carry one task out."""
    site, part = task.site, task.part
    return Stager(
        site,
        Staged(part.number, part.name, part.begins_file),
        lines_before=lambda: lines_before(part),
    ).run(lambda gathered, pause: read_part(part, gathered, site.columns, pause))


class Stager:
    """Stages what a reader gathers, piece by piece."""

    def __init__(
        self, site: Site, answer: Staged, *, lines_before: Callable[[], int] = lambda: 0
    ) -> None:
        self._site = site
        self._answer = answer
        self._asking = Asking(site.asking)
        answer.unread.shown_max = answer.broken.shown_max = site.shown_max
        self._gathered = Gathered(
            site.schema,
            answer.unread,
            site.policy,
            bytes_max=UNBOUNDED,  # pieces are staged long before memory runs out
            lines_before=lines_before,
            marks_nulls=site.mode == "upsert",
        )

    def run(self, read: Callable[[Gathered, Callable[[], None]], int]) -> Staged:
        """Read everything; the reader calls what it is given between pieces."""
        self._answer.lines = read(self._gathered, self._stage_full_piece)
        self._stage_piece()
        site = self._site
        self._answer.asked = self._asking.write(site.objects, f"{site.prefix}/asked")
        _forget(self._answer.unread, self._set_aside)
        return self._answer

    @property
    def _set_aside(self) -> frozenset[int]:
        return self._site.set_aside.get(self._answer.part, frozenset())

    def _stage_full_piece(self) -> None:
        if self._gathered.bytes_held > PIECE_BYTES:
            self._stage_piece()

    def _stage_piece(self) -> None:
        answer, schema = self._answer, self._site.schema
        rows = {
            key: _without_lines(table, self._set_aside)
            for key, table in self._gathered.finish().items()
        }
        given = {key: table["id"].is_valid() for key, table in rows.items()}
        assigned = self._site.assigned
        found = Identified(rows)
        if assigned is None:
            found = identify(
                schema,
                rows,
                answer.unread,
                strict=True,
                make=self._ids,
                orders=self._orders(rows),
                names_nodes=self._site.mode == "upsert",
            )
        shelving = Shelving(self._site.buckets)
        for key in sorted(found.rows):
            owner, table = schema.type(key), found.rows[key]
            answer.broken.files = answer.unread.files
            mask = None if owner.key_properties else given[key]
            if self._site.mode == "upsert":
                check_given(owner, table, mask, answer.broken)
            else:
                only = None if assigned is None else assigned[key].properties
                check_required(owner, table, answer.broken, only=only)
            check_values(owner, table, answer.broken)
            answer.rows[key] = answer.rows.get(key, 0) + table.num_rows
            if "required" in answer.broken.rules or (answer.unread and not self._set_aside):
                continue  # nothing more will be asked of this load
            placed = _placed(table, answer.part)
            self._stage_type(owner, placed, mask, shelving)
        if shelving.tables:
            answer.shelves.append(shelving.write(self._site.objects, f"{self._site.prefix}/keys"))

    def _stage_type(
        self, owner: NodeType | EdgeType, rows: pa.Table, given: Any, shelving: Shelving
    ) -> None:
        """Rows of one type. ``given`` marks those that came with an id; None means all of them."""
        answer = self._answer
        named, fresh = rows, rows.slice(0, 0)
        if given is not None:
            named, fresh = rows.filter(given), rows.filter(pc.invert(given))
        answer.given[owner.key] = answer.given.get(owner.key, 0) + named.num_rows
        if named.num_rows:
            shelving.add(f"ids/{owner.key}", self._named_ids(owner, named), named["id"])
            self._asking.note(owner.key, named["id"])
        if isinstance(owner, EdgeType):
            for column, node_key in ends(owner):
                self._asking.note(node_key, rows[column])
        direct = rows
        if owner.key in self._site.waiting:
            shelving.add(f"rows/{owner.key}", named, named["id"])
            direct = fresh
        if isinstance(owner, EdgeType) and fresh.num_rows and self._site.matches_edges:
            direct = self._shelve_content(owner, fresh, direct, shelving)
        shelve_values(shelving, owner, direct, generated=given is not None and not named.num_rows)
        if direct.num_rows and not answer.broken:
            hit("task.before_files")
            table = self._site.target(owner.key)
            written = write_rows(table, without_places(direct))
            answer.fragments.setdefault(owner.key, []).extend(written)
            hit("task.after_files")

    def _named_ids(self, owner: NodeType | EdgeType, named: pa.Table) -> pa.Table:
        """The ids of rows that have one; of a merge with what is null beside them."""
        found = named.select(["id", FILE, LINE])
        if self._site.mode != "merge" or owner.key not in self._site.asking:
            return found
        if self._site.assigned is not None or owner.key in self._site.waiting:
            return found
        return found.append_column(NULLED, null_positions(owner, named))

    def _shelve_content(
        self, edge: EdgeType, fresh: pa.Table, direct: pa.Table, shelving: Shelving
    ) -> pa.Table:
        """Edges without id by their content; returns the rows that are written at once."""
        upsert = self._site.mode == "upsert"
        if upsert:
            fresh = with_defaults(edge, fresh).drop_columns([NULLED])
        rows = with_content(edge, fresh)
        self._asking.note(f"content/{edge.key}", rows[CONTENT])
        wanted = rows if upsert else rows.select([CONTENT])
        shelving.add(f"fresh/{edge.key}", wanted, rows[CONTENT])
        return direct.slice(0, 0) if upsert else direct

    def _orders(self, rows: Mapping[str, pa.Table]) -> Orders:
        """The known orders. While none is known, what a piece allows is noted for the driver, who
        has everything staged again when it is not the order of this graph."""
        if self._site.orders:
            return self._site.orders
        noted, orders = self._answer.orders, {}
        for key, table in rows.items():
            owner = self._site.schema.type(key)
            found = possible_orders(owner, table) if isinstance(owner, NodeType) else None
            if found:
                noted[key] = noted.get(key, found) & found
                orders[key] = next(iter(found))
        return orders

    def _ids(self, rows: pa.Table) -> pa.Array:
        places = rows[LINE].to_numpy()
        return placed_ulids(self._site.operation_id, self._answer.part, places)


def shelve_values(
    shelving: Shelving, owner: NodeType | EdgeType, rows: pa.Table, *, generated: bool = False
) -> None:
    """Shelve what is checked by value: the ends of edges, and the tuples of ``@unique``.

    Rows that carry ``#final`` and do not count are left out where only the final ones matter.
    ``generated`` says that all ids were made here: nobody will ask for them.
    """
    if not rows.num_rows:
        return
    marked = FINAL in rows.column_names
    if isinstance(owner, EdgeType):
        final = rows.filter(rows[FINAL]) if marked else rows
        for column, _ in ends(owner):
            wanted = [column, FILE, LINE] if generated else [column, "id", FILE, LINE]
            shelving.add(f"ends/{owner.key}/{column}", final.select(wanted), final[column])
    beside = (FILE, LINE, FINAL) if marked else (FILE, LINE)
    for number, columns in enumerate(owner.unique):
        shelve_tuples(shelving, f"unique/{owner.key}/{number}", owner, columns, rows, beside)


def shelve_tuples(
    shelving: Shelving,
    name: str,
    owner: NodeType | EdgeType,
    columns: tuple[str, ...],
    rows: pa.Table,
    beside: tuple[str, ...] = (),
) -> None:
    """Shelve the tuples of some columns, with the ids that have them; a null makes none."""
    keys = tuple_keys(owner, columns, rows)
    complete = pc.is_valid(keys)
    names = list(dict.fromkeys(("id", *columns, *beside)))
    shelving.add(name, rows.select(names).filter(complete), keys.filter(complete))


def without_places(rows: pa.Table) -> pa.Table:
    beside = (FILE, LINE, FINAL, NULLED, CONTENT)
    return rows.drop_columns([name for name in beside if name in rows.column_names])


def _without_lines(rows: pa.Table, lines: frozenset[int]) -> pa.Table:
    if not lines:
        return rows
    return rows.filter(pa.array(~np.isin(rows[LINE].to_numpy(), list(lines))))


def _forget(report: Report, lines: frozenset[int]) -> None:
    """Leave out what is wrong with lines that were set aside before."""
    if lines and report:
        report.shown = [item for item in report.shown if item.line not in lines]
        report.total = len(report.shown)
        report.rules = {item.rule for item in report.shown}


def _placed(rows: pa.Table, part: int) -> pa.Table:
    """The rows with the number of their part as their file."""
    numbers = pa.array(np.full(rows.num_rows, part, dtype=np.int32))
    return rows.set_column(rows.column_names.index(FILE), FILE, numbers)
