"""Which stored columns the checks of a load read, and merging the reports of many tasks.

Pure functions on the driver over pins and counts; they never read rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnigraph.bulk.load.bucket_checks import CheckedBuckets
from omnigraph.bulk.load.match_stored import CONTENT
from omnigraph.bulk.load.stage import StagedPart
from omnigraph.bulk.load.stored_keys import StoredProjection
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Report, Violation
from omnigraph.constraints.edge_checks import ends, incident
from omnigraph.ingest.load import LoadMode
from omnigraph.lang.schema import SRC, AcceptedSchema, EdgeCardinality, EdgeType, NodeType

_RULES: Final = ("required", "range", "check", "enum")


# -- stored columns --------------------------------------------------------------------------------


def stored_projections(
    schema: AcceptedSchema,
    snapshot: SnapshotPins,
    mode: LoadMode,
    given: Mapping[str, int],
    matched: Collection[str] = (),
) -> list[StoredProjection]:
    """The stored columns that the checks of this load read.

    ``given`` has every written type, with the number of rows that came with an id; ``matched`` the
    edge types of which some rows are compared by content.
    """
    projections: dict[str, StoredProjection] = {}
    for key in sorted(given):
        owner = schema.type(key)
        if mode != "overwrite" and snapshot.pin(key).rows:
            for item in _for_written_type(owner, mode, bool(given[key])):
                projections[item.name] = item
        if key in matched and snapshot.pin(key).rows:
            names = tuple(column.name for column in owner.columns())
            name = f"stored-content/{key}"
            projections[name] = StoredProjection(name, key, names, CONTENT, located=True)
        if mode == "overwrite" and isinstance(owner, NodeType):
            for item in _for_replaced_nodes(schema, snapshot, owner, given):
                projections[item.name] = item
        if isinstance(owner, EdgeType):
            for item in _for_edge_ends(schema, snapshot, owner, mode, given):
                projections.setdefault(item.name, item)
    return list(projections.values())


def _for_written_type(
    owner: NodeType | EdgeType, mode: LoadMode, named: bool
) -> Iterable[StoredProjection]:
    """Columns of a written type: ids, unique tuples, and sources if edges are counted."""
    counted = isinstance(owner, EdgeType) and owner.cardinality != EdgeCardinality()
    if named:
        unique = [column for columns in owner.unique for column in columns]
        names = dict.fromkeys(["id", *([SRC] if counted else []), *unique])
        yield StoredProjection(
            f"stored/{owner.key}", owner.key, tuple(names), "id", mode in ("merge", "upsert")
        )
        return
    if counted:
        yield StoredProjection(f"stored-src/{owner.key}", owner.key, (SRC,), SRC)
    for number, columns in enumerate(owner.unique):
        names = dict.fromkeys(("id", *columns))
        yield StoredProjection(
            f"stored-unique/{owner.key}/{number}", owner.key, tuple(names), columns
        )


def _for_replaced_nodes(
    schema: AcceptedSchema, snapshot: SnapshotPins, node: NodeType, given: Mapping[str, int]
) -> Iterable[StoredProjection]:
    """Ids of an overwritten node type, and stored edges that would dangle without them."""
    if not snapshot.pin(node.key).rows:
        return
    yield StoredProjection(f"stored/{node.key}", node.key, ("id",), "id")
    for edge, column in incident(schema, node.key):
        if edge.key not in given and snapshot.pin(edge.key).rows:
            name = f"stored-ends/{edge.key}/{column}"
            yield StoredProjection(name, edge.key, ("id", column), column)


def _for_edge_ends(
    schema: AcceptedSchema,
    snapshot: SnapshotPins,
    edge: EdgeType,
    mode: LoadMode,
    given: Mapping[str, int],
) -> Iterable[StoredProjection]:
    """Ids of the node types that written edges refer to."""
    for _, node_key in ends(edge):
        replaced = mode == "overwrite" and node_key in given
        if snapshot.pin(node_key).rows and not replaced:
            yield StoredProjection(f"stored/{node_key}", node_key, ("id",), "id")


def needs_value_checks(schema: AcceptedSchema, mode: LoadMode, written: Iterable[str]) -> bool:
    """Whether there are checks by value: unique tuples, ends of edges, deleted nodes."""
    types = [schema.type(key) for key in written]
    return mode == "overwrite" or any(isinstance(t, EdgeType) or t.unique for t in types)


# -- merging reports -------------------------------------------------------------------------------


def lines_before(staged: Sequence[StagedPart]) -> dict[int, int]:
    """How many lines of its file come before each part, by part."""
    found: dict[int, int] = {}
    total = 0
    for result in staged:
        total = 0 if result.begins_file else total
        found[result.part] = total
        total += result.lines
    return found


def report_rows(
    schema: AcceptedSchema, staged: Sequence[StagedPart], before: Mapping[int, int]
) -> tuple[Report, Report]:
    """Two reports: unreadable records, and violations of rules about single rows."""
    unread, broken = Report(), Report()
    for whole, reports, order in (
        (unread, [result.unread for result in staged], _order_of_unread),
        (broken, [result.broken for result in staged], lambda v: _order_of_broken(schema, v)),
    ):
        found = []
        for result, report in zip(staged, reports, strict=True):
            for at, violation in enumerate(report.shown):
                moved = _moved(violation, before[result.part])
                found.append((order(violation), result.part, at, moved))
        _fill(whole, reports, [item[3] for item in sorted(found, key=lambda item: item[:3])])
    return unread, broken


def report_checks(results: Iterable[CheckedBuckets]) -> Report:
    """All violations found by the bucket checks, in the order of the evaluator."""
    noted = [(order, report) for result in results for order, report in result.reports]
    found: list[tuple[Any, Violation]] = []
    for order, report in noted:
        for violation in report.shown:
            place = (violation.file or "", violation.line or 0, violation.id or "")
            stored_last = violation.rule == "exists"  # of ids: repeated ones, then stored ones
            found.append(((order, stored_last, place), violation))
    found.sort(key=lambda item: item[0])
    whole = Report()
    _fill(whole, [report for _, report in noted], [violation for _, violation in found])
    return whole


def one_report(*reports: Report) -> Report:
    """Reports concatenated."""
    whole = Report()
    _fill(whole, reports, [violation for report in reports for violation in report.shown])
    return whole


def overridden_rows(results: Iterable[CheckedBuckets]) -> dict[str, np.ndarray[Any, Any]]:
    """The positions of overridden rows that several tasks found, by type."""
    found: dict[str, list[np.ndarray[Any, Any]]] = {}
    for result in results:
        for key, positions in result.overridden.items():
            found.setdefault(key, []).extend(positions)
    return {key: np.concatenate(positions) for key, positions in found.items()}


def _fill(whole: Report, reports: Sequence[Report], violations: Iterable[Violation]) -> None:
    whole.shown_max = max((r.shown_max for r in reports), default=whole.shown_max)
    for report in reports:
        whole.rules |= report.rules
    whole.extend(violations, sum(report.total for report in reports))


def _moved(violation: Violation, lines: int) -> Violation:
    """The violation with its line counted from the beginning of the file, not of its part."""
    if violation.line is None:
        return violation
    return replace(violation, line=violation.line + lines)


def _order_of_unread(violation: Violation) -> Any:
    """Unreadable records first, then ids that contradict keys, by type."""
    key = violation.type_key if violation.rule == "key" else None
    return (key is not None, *(-ord(letter) for letter in key or ""))


def _order_of_broken(schema: AcceptedSchema, violation: Violation) -> Any:
    key = violation.type_key or ""
    properties = list(schema.type(key).properties)
    return (key, _RULES.index(violation.rule), properties.index(violation.property or ""))
