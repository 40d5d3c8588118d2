"""A merge of branches on Spark: contested entities are decided, rows made, checked and staged by
tasks.

Where the histories meet, which rows differ, the rules, their messages and the commit are those of a
merge in process. The driver holds of every entity its id, its row ids and what rules across
entities ask for (ends, unique values); whole rows are read and written by tasks only. Files that a
refused merge has staged are taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.constraints import Report
from omnigraph.constraints.edges import ends
from omnigraph.constraints.rows import check_required, check_values
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.merge.conflicts import VIOLATIONS_MAX
from omnigraph.merge.content import TypeMerge
from omnigraph.merge.contested import Composed, Decided, Decider, MergeRules
from omnigraph.merge.engine import Composition, type_image
from omnigraph.merge.merged_rows import alternatives, compose, known_rows, pieces
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.preparer import Preparer, has_effect
from omnigraph.snapshots.entity_delta import Side
from omnigraph.spark.deletion import delete_replaced
from omnigraph.spark.discard import remove_files
from omnigraph.spark.intent import Intent
from omnigraph.spark.load.check_plan import one_report
from omnigraph.spark.load.partitions import open_store, packed, unpacked
from omnigraph.spark.tasks import Tasks
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.row_addresses import addresses
from omnigraph.storage.lance.staging.rows import stage_fragments, with_hidden, write_rows
from omnigraph.storage.lance.tables import TableRef
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

ROWS_PER_TASK: Final = 100_000
"""Entities that one task decides or writes: some hundred megabytes of their values at most."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The type of a merge on its sides, as it travels."""

    graph_uri: str
    types: Mapping[str, tuple[NodeType | EdgeType, TablePin]]

    @classmethod
    def of(cls, graph_uri: str, sides: Mapping[str, Side]) -> Sides:
        return cls(graph_uri, {name: (side.owner, side.pin) for name, side in sides.items()})

    def open(self) -> dict[str, Side]:
        store = open_store(self.graph_uri)
        return {n: Side(owner, pin, store.open(pin.ref)) for n, (owner, pin) in self.types.items()}


@dataclass(frozen=True, slots=True)
class DecideTask:
    sides: Sides
    key: str
    rules: MergeRules
    rows: bytes


@dataclass(frozen=True, slots=True)
class ComposeTask:
    """Some entities of one type: rows to copy from one side, or entities to put together."""

    sides: Sides
    key: str
    copied: Mapping[str, bytes]
    composed: tuple[Composed, ...]
    target: TableRef | None
    """Where the rows are written; None when they are only checked."""
    prefix: str
    undecided: bool = False
    """Whether these are possible outcomes of undecided entities."""


@dataclass(slots=True)
class Made:
    """What became of them: files, where the values that rules ask for are, and what is wrong."""

    keys: str
    fragments: list[Any] = field(default_factory=list)
    report: Report = field(default_factory=lambda: Report(shown_max=VIOLATIONS_MAX))


class SparkMerge:
    """The engine of one merge; implements ``MergeEngine``."""

    def __init__(
        self, repository: Repository, tasks: Tasks, *, rows_per_task: int = ROWS_PER_TASK
    ) -> None:
        self._repository = repository
        self._uri = repository.location.uri
        self._tasks = tasks
        self._rows_per_task = rows_per_task
        self._intent = Intent(repository.objects, new_ulid())
        self._declared = False
        self._targets: dict[str, TableRef] = {}
        self._written: dict[str, list[Any]] = {}

    def decide(self, decider: Decider, rows: pa.Table) -> Decided:
        sides = Sides.of(self._uri, decider.sides)
        specs = [
            DecideTask(sides, decider.key, decider.rules, packed(part))
            for part in _slices(rows, self._rows_per_task)
        ]
        whole = Decided()
        for found in self._tasks.run("comparing", decide_rows, specs, light=True):
            whole.add(found)
        return whole

    def compose(self, preparer: Preparer, types: Sequence[TypeMerge]) -> Composition:
        self._intent.declare()
        self._declared = True
        refused = any(merge.undecided for merge in types)
        specs = [task for merge in types for task in self._compose_tasks(preparer, merge, refused)]
        answers = self._tasks.run("merging rows", make_rows, specs)
        hit("stage.after_files")
        parts: dict[str, list[pa.Table]] = {}
        for spec, made in zip(specs, answers, strict=True):
            parts.setdefault(spec.key, []).append(unpacked(self._repository.objects.get(made.keys)))
            self._written.setdefault(spec.key, []).extend(made.fragments)
        image, known = {}, {}
        for merge in types:
            known[merge.key], gone = known_rows(merge)
            image[merge.key] = type_image(merge, parts.get(merge.key, []), gone)
        report = one_report(Report(shown_max=VIOLATIONS_MAX), *(made.report for made in answers))
        preparer.check(image, report, rows_checked=True, ids_known=True)
        if report:
            remove_files(self._repository, self._files())
        return Composition(image, known, report)

    def stage(self, preparer: Preparer, made: Composition, info: WriteInfo) -> PreparedWrite:
        properties = preparer.properties(info)
        tables = []
        for key in sorted(made.image):
            known = made.known[key]
            table = self._repository.tables.open(self._targets[key])
            replaced = addresses(table, known.written.drop_null())
            gone = addresses(table, known.removed)
            changed, emptied = delete_replaced(
                self._tasks, self._uri, self._intent.prefix, table, [replaced, gone]
            )
            staged = stage_fragments(
                table,
                "change" if self._written.get(key) else "delete",
                properties,
                new=self._written.get(key, ()),
                changed=changed,
                gone=emptied,
                rows_inserted=known.written.null_count,
                rows_updated=len(replaced),
                rows_deleted=len(gone),
                removed=None if len(gone) else (),
            )
            if has_effect(staged):
                tables.append(PreparedTable(preparer.pin(key), staged))
        return preparer.staged(made.image, info, tables)

    def close(self) -> None:
        if self._declared:
            self._intent.clear()

    def _compose_tasks(
        self, preparer: Preparer, merge: TypeMerge, refused: bool
    ) -> Iterator[ComposeTask]:
        """The tasks of one type; of a merge that is refused anyway nothing is written."""
        target = None
        if not refused:
            target = self._targets[merge.key] = preparer.writable(merge.key).ref
        sides = Sides.of(self._uri, merge.sides)
        for whole, undecided in ((merge, False), (alternatives(merge), True)):
            for piece in pieces(whole, self._rows_per_task):
                yield ComposeTask(
                    sides,
                    merge.key,
                    {name: packed(pairs) for name, pairs in piece.copied.items()},
                    tuple(piece.composed),
                    target,
                    self._intent.prefix,
                    undecided,
                )

    def _files(self) -> list[str]:
        return [
            f"{self._targets[key].dataset_path}/data/{file.path}"
            for key, fragments in self._written.items()
            for fragment in fragments
            for file in fragment.files
        ]


# -- on executors ----------------------------------------------------------------------------------


def decide_rows(task: DecideTask) -> Decided:
    """Carry one task out."""
    return Decider(task.key, task.sides.open(), task.rules).decide(unpacked(task.rows))


def make_rows(task: ComposeTask) -> Made:
    """Carry one task out: rows as they will be, checked one by one, and written."""
    copied = {name: unpacked(pairs) for name, pairs in task.copied.items()}
    merge = TypeMerge(task.key, task.sides.open(), copied, list(task.composed))
    made = Made(f"{task.prefix}/keys/{new_ulid()}")
    rows, owner = compose(merge, made.report), merge.target.owner
    assert rows is not None, "a piece has rows"
    check_required(owner, rows, made.report)
    check_values(owner, rows, made.report)
    objects = open_objects(parse_location(task.sides.graph_uri))
    asked = _decidable_columns(owner) if task.undecided else _asked_columns(owner)
    objects.put(made.keys, packed(rows.select(asked)))
    if task.target is not None and not made.report:
        hit("task.before_files")
        table = open_store(task.sides.graph_uri).open(task.target)
        replaced = addresses(table, known_rows(merge)[0].written.drop_null())
        made.fragments = write_rows(table, with_hidden(table, rows, replaced))
        hit("task.after_files")
    return made


def _asked_columns(owner: NodeType | EdgeType) -> list[str]:
    """What rules across entities ask for."""
    points = [column for column, _ in ends(owner)] if isinstance(owner, EdgeType) else []
    unique = [column for columns in owner.unique for column in columns]
    return list(dict.fromkeys(("id", *points, *unique)))


def _decidable_columns(owner: NodeType | EdgeType) -> list[str]:
    """What any rule asks for: whether it is broken may depend on how an entity is decided."""
    return [column.name for column in owner.columns() if not column.type.is_blob]


def _slices(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
