"""What a load's checks need of the stored rows, and how reports of many tasks become one.

Plain functions on the driver: they read pins and counts, never rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Report, Violation
from omnigraph.constraints.edges import ends, incident
from omnigraph.ingest.load import Mode
from omnigraph.lang.schema import SRC, AcceptedSchema, Cardinality, EdgeType, NodeType
from omnigraph.spark.load.check import Checked
from omnigraph.spark.load.match_stored import CONTENT
from omnigraph.spark.load.stage import Staged
from omnigraph.spark.load.stored_keys import Wanted

_RULES: Final = ("required", "range", "check", "enum")


# -- what is needed of the stored rows -------------------------------------------------------------


def wanted_of_stored(
    schema: AcceptedSchema,
    snapshot: SnapshotPins,
    mode: Mode,
    given: Mapping[str, int],
    matched: Collection[str] = (),
) -> list[Wanted]:
    """The stored columns that the checks of this load ask for.

    ``given`` has every written type, with the number of rows that came with an id; ``matched`` the
    edge types of which some rows are compared by content.
    """
    wanted: dict[str, Wanted] = {}
    for key in sorted(given):
        owner = schema.type(key)
        if mode != "overwrite" and snapshot.pin(key).rows:
            for item in _of_written(owner, mode, bool(given[key])):
                wanted[item.name] = item
        if key in matched and snapshot.pin(key).rows:
            names = tuple(column.name for column in owner.columns())
            name = f"stored-content/{key}"
            wanted[name] = Wanted(name, key, names, CONTENT, located=True)
        if mode == "overwrite" and isinstance(owner, NodeType):
            for item in _of_replaced(schema, snapshot, owner, given):
                wanted[item.name] = item
        if isinstance(owner, EdgeType):
            for item in _of_ends(schema, snapshot, owner, mode, given):
                wanted.setdefault(item.name, item)
    return list(wanted.values())


def _of_written(owner: NodeType | EdgeType, mode: Mode, named: bool) -> Iterable[Wanted]:
    """Rows that may have an id of the input, or a tuple or a source in common with it."""
    counted = isinstance(owner, EdgeType) and owner.cardinality != Cardinality()
    if named:
        unique = [column for columns in owner.unique for column in columns]
        names = dict.fromkeys(["id", *([SRC] if counted else []), *unique])
        yield Wanted(
            f"stored/{owner.key}", owner.key, tuple(names), "id", mode in ("merge", "upsert")
        )
        return
    if counted:
        yield Wanted(f"stored-src/{owner.key}", owner.key, (SRC,), SRC)
    for number, columns in enumerate(owner.unique):
        names = dict.fromkeys(("id", *columns))
        yield Wanted(f"stored-unique/{owner.key}/{number}", owner.key, tuple(names), columns)


def _of_replaced(
    schema: AcceptedSchema, snapshot: SnapshotPins, node: NodeType, given: Mapping[str, int]
) -> Iterable[Wanted]:
    """A replaced node type: which nodes vanish, and which stored edges would miss them."""
    if not snapshot.pin(node.key).rows:
        return
    yield Wanted(f"stored/{node.key}", node.key, ("id",), "id")
    for edge, column in incident(schema, node.key):
        if edge.key not in given and snapshot.pin(edge.key).rows:
            name = f"stored-ends/{edge.key}/{column}"
            yield Wanted(name, edge.key, ("id", column), column)


def _of_ends(
    schema: AcceptedSchema,
    snapshot: SnapshotPins,
    edge: EdgeType,
    mode: Mode,
    given: Mapping[str, int],
) -> Iterable[Wanted]:
    """The nodes that written edges may point to."""
    for _, node_key in ends(edge):
        replaced = mode == "overwrite" and node_key in given
        if snapshot.pin(node_key).rows and not replaced:
            yield Wanted(f"stored/{node_key}", node_key, ("id",), "id")


def asks_by_value(schema: AcceptedSchema, mode: Mode, written: Iterable[str]) -> bool:
    """Whether anything is checked by value: unique tuples, ends of edges, vanished nodes."""
    types = [schema.type(key) for key in written]
    return mode == "overwrite" or any(isinstance(t, EdgeType) or t.unique for t in types)


# -- one report out of many ------------------------------------------------------------------------


def lines_before(staged: Sequence[Staged]) -> dict[int, int]:
    """How many lines of its file come before each part, by part."""
    found: dict[int, int] = {}
    total = 0
    for answer in staged:
        total = 0 if answer.begins_file else total
        found[answer.part] = total
        total += answer.lines
    return found


def report_rows(
    schema: AcceptedSchema, staged: Sequence[Staged], before: Mapping[int, int]
) -> tuple[Report, Report]:
    """Records that could not be read; and rules about single rows that are broken."""
    unread, broken = Report(), Report()
    for whole, reports, order in (
        (unread, [answer.unread for answer in staged], _order_of_unread),
        (broken, [answer.broken for answer in staged], lambda v: _order_of_broken(schema, v)),
    ):
        found = []
        for answer, report in zip(staged, reports, strict=True):
            for at, violation in enumerate(report.shown):
                moved = _moved(violation, before[answer.part])
                found.append((order(violation), answer.part, at, moved))
        _fill(whole, reports, [item[3] for item in sorted(found, key=lambda item: item[:3])])
    return unread, broken


def report_checks(answers: Iterable[Checked]) -> Report:
    """Everything that the checks across the input found, in the order of the evaluator."""
    noted = [(order, report) for answer in answers for order, report in answer.reports]
    found: list[tuple[Any, Violation]] = []
    for order, report in noted:
        for violation in report.shown:
            place = (violation.file or "", violation.line or 0, violation.id or "")
            found.append(((order, place), violation))
    found.sort(key=lambda item: item[0])
    whole = Report()
    _fill(whole, [report for _, report in noted], [violation for _, violation in found])
    return whole


def one_report(*reports: Report) -> Report:
    """Several reports, one after the other."""
    whole = Report()
    _fill(whole, reports, [violation for report in reports for violation in report.shown])
    return whole


def joined(parts: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> dict[str, Any]:
    """Arrays of several tasks, by key."""
    keys = {key for part in parts for key in part}
    return {key: np.concatenate([part[key] for part in parts if key in part]) for key in keys}


def _fill(whole: Report, reports: Sequence[Report], violations: Iterable[Violation]) -> None:
    whole.shown_max = max((r.shown_max for r in reports), default=whole.shown_max)
    for report in reports:
        whole.rules |= report.rules
    whole.extend(violations, sum(report.total for report in reports))


def _moved(violation: Violation, lines: int) -> Violation:
    """The violation, of which the line was counted from the beginning of its part."""
    if violation.line is None:
        return violation
    return replace(violation, line=violation.line + lines)


def _order_of_unread(violation: Violation) -> Any:
    """Records that could not be read come first; then ids that contradict keys, by type."""
    key = violation.type_key if violation.rule == "key" else None
    return (key is not None, *(-ord(letter) for letter in key or ""))


def _order_of_broken(schema: AcceptedSchema, violation: Violation) -> Any:
    key = violation.type_key or ""
    properties = list(schema.type(key).properties)
    return (key, _RULES.index(violation.rule), properties.index(violation.property or ""))
