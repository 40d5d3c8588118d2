"""A merge of branches on Spark: tasks decide contested entities and compose, check and stage rows.

The merge base, the row differences, the rules, their messages and the commit are those of a merge
in process. The driver holds for every entity its id, its row ids and the columns of constraints
across entities (ends, unique values); only tasks read and write whole rows. The staged files of a
refused merge are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from omnigraph.bulk.deletion import delete_replaced, keep_addresses
from omnigraph.bulk.discard import remove_files
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.intent import Intent
from omnigraph.bulk.load.check_plan import one_report
from omnigraph.bulk.load.partitions import from_ipc, to_ipc
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.constraints import Report
from omnigraph.constraints.edge_checks import ends
from omnigraph.constraints.row_checks import check_required, check_values
from omnigraph.lang.schema import EdgeType, NodeType
from omnigraph.merge.conflicts import VIOLATIONS_MAX
from omnigraph.merge.engine import Composition, type_image
from omnigraph.merge.entity_decisions import Composed, Decided, Decider, MergeRules
from omnigraph.merge.merged_rows import alternatives, compose, known_rows, pieces
from omnigraph.merge.type_merges import TypeMerge
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.preparer import Preparer, has_effect
from omnigraph.snapshots.entity_delta import Side
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.row_addresses import addresses
from omnigraph.storage.lance.staging.rows import stage_fragments, with_hidden, write_rows
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

ROWS_PER_TASK: Final = 100_000
"""Entities that one task decides or writes: at most some hundred megabytes of values."""


@dataclass(frozen=True, slots=True)
class TypeSides:
    """One type on the sides of a merge: a picklable value, opened on the executor."""

    graph: GraphStorage
    types: Mapping[str, tuple[NodeType | EdgeType, TablePin]]

    @classmethod
    def of(cls, graph: GraphStorage, sides: Mapping[str, Side]) -> TypeSides:
        return cls(graph, {name: (side.owner, side.pin) for name, side in sides.items()})

    def open(self) -> dict[str, Side]:
        store = self.graph.tables()
        return {n: Side(owner, pin, store.open(pin.ref)) for n, (owner, pin) in self.types.items()}


@dataclass(frozen=True, slots=True)
class DecideTask:
    sides: TypeSides
    key: str
    rules: MergeRules
    rows: bytes


@dataclass(frozen=True, slots=True)
class ComposeTask:
    """Some entities of one type: rows copied from one side, or composed of several."""

    sides: TypeSides
    key: str
    copied: Mapping[str, bytes]
    composed: tuple[Composed, ...]
    target: TableRef | None
    """Where the rows are written; None when they are only checked."""
    prefix: str
    undecided: bool = False
    """Whether the rows are alternatives of undecided entities."""


@dataclass(slots=True)
class ComposedRows:
    """The result of a task: fragments, the object with constraint columns, and violations."""

    keys: str
    fragments: list[Any] = field(default_factory=list)
    report: Report = field(default_factory=lambda: Report(shown_max=VIOLATIONS_MAX))


class SparkMerge:
    """The Spark engine of one merge; implements ``MergeEngine``."""

    def __init__(
        self, repository: Repository, tasks: Tasks, *, rows_per_task: int = ROWS_PER_TASK
    ) -> None:
        self._repository = repository
        self._graph = GraphStorage.of(repository)
        self._rows_per_task = rows_per_task
        self._intent = Intent(repository, new_ulid())
        self._scratch = Scratch(self._graph, self._intent.prefix)
        self._tasks = tasks.within(self._scratch)
        self._declared = False
        self._targets: dict[str, TableRef] = {}
        self._written: dict[str, list[Any]] = {}

    def decide(self, decider: Decider, rows: pa.Table) -> Decided:
        sides = TypeSides.of(self._graph, decider.sides)
        specs = [
            DecideTask(sides, decider.key, decider.rules, to_ipc(part))
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
        results = self._tasks.run("merging rows", make_rows, specs)
        hit("stage.after_files")
        parts: dict[str, list[pa.Table]] = {}
        for spec, made in zip(specs, results, strict=True):
            parts.setdefault(spec.key, []).append(from_ipc(self._repository.objects.get(made.keys)))
            self._written.setdefault(spec.key, []).extend(made.fragments)
        image, known = {}, {}
        for merge in types:
            known[merge.key], gone = known_rows(merge)
            image[merge.key] = type_image(merge, parts.get(merge.key, []), gone)
        report = one_report(Report(shown_max=VIOLATIONS_MAX), *(made.report for made in results))
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
            objects, prefix = self._scratch.objects, self._scratch.prefix
            taken = [keep_addresses(objects, prefix, found) for found in (replaced, gone)]
            changed, emptied = delete_replaced(self._tasks, self._scratch, table, taken)
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
        """The tasks of one type; a merge with undecided entities writes no files."""
        target = None
        if not refused:
            target = self._targets[merge.key] = preparer.writable(merge.key).ref
        sides = TypeSides.of(self._graph, merge.sides)
        for whole, undecided in ((merge, False), (alternatives(merge), True)):
            for piece in pieces(whole, self._rows_per_task):
                yield ComposeTask(
                    sides,
                    merge.key,
                    {name: to_ipc(pairs) for name, pairs in piece.copied.items()},
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
    """Decide some contested entities (task)."""
    return Decider(task.key, task.sides.open(), task.rules).decide(from_ipc(task.rows))


def make_rows(task: ComposeTask) -> ComposedRows:
    """Compose some merged rows, check them one by one and write them (task)."""
    copied = {name: from_ipc(pairs) for name, pairs in task.copied.items()}
    merge = TypeMerge(task.key, task.sides.open(), copied, list(task.composed))
    made = ComposedRows(f"{task.prefix}/keys/{new_ulid()}")
    rows, owner = compose(merge, made.report), merge.target.owner
    assert rows is not None, "a piece has rows"
    check_required(owner, rows, made.report)
    check_values(owner, rows, made.report)
    objects = task.sides.graph.objects()
    columns = _checked_columns(owner) if task.undecided else _constraint_columns(owner)
    objects.put(made.keys, to_ipc(rows.select(columns)))
    if task.target is not None and not made.report:
        hit("task.before_files")
        table = task.sides.graph.table(task.target)
        replaced = addresses(table, known_rows(merge)[0].written.drop_null())
        made.fragments = write_rows(table, with_hidden(table, rows, replaced))
        hit("task.after_files")
    return made


def _constraint_columns(owner: NodeType | EdgeType) -> list[str]:
    """The columns of constraints across entities."""
    points = [column for column, _ in ends(owner)] if isinstance(owner, EdgeType) else []
    unique = [column for columns in owner.unique for column in columns]
    return list(dict.fromkeys(("id", *points, *unique)))


def _checked_columns(owner: NodeType | EdgeType) -> list[str]:
    """The columns of any constraint: a violation may depend on how an entity is decided."""
    return [column.name for column in owner.columns() if not column.type.is_blob]


def _slices(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
