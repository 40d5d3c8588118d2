"""Choice of access: which types are loaded and which only looked up, and why.

What is in memory is used. What is not, and is large, is looked up in the tables for the first few
queries that ask for little of it, and loaded when it keeps being asked for. The reasons are what
``explain`` shows; the answer of a query never depends on the choice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from omnigraph.engine.exec.scan import has_lookup
from omnigraph.engine.plan.join_order import Rows, order_steps
from omnigraph.engine.tables.access import SnapshotTables, TypeUse
from omnigraph.engine.tables.loaded import CachedNodes
from omnigraph.lang.query.plan.logical import Pattern, ReadPlan
from omnigraph.lang.query.plan.steps import Scan

Access = Literal["auto", "cache", "probe"]

SMALL_ROWS_MAX: Final = 5_000
"""A type of so few entities is loaded at once: that takes as long as looking one up."""
TOUCHES_MAX: Final = 2
"""A version that was looked up this often is loaded the next time."""
TOUCHED_MAX: Final = 4_096
"""Versions whose touches are remembered."""

IN_MEMORY: Final = "in memory"
SMALL: Final = "small enough to be loaded at once"
NAMED: Final = "not in memory, and the query names where to start"
NOT_NAMED: Final = "not in memory, and no index names the few entities to start from"
OFTEN: Final = "looked up often enough that loading it pays"
ASKED: Final = "asked for by the caller"


class Touches:
    """How often versions were looked up without being loaded. Thread-safe and bounded."""

    def __init__(self) -> None:
        self._counts: OrderedDict[object, int] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, key: object) -> int:
        """Note a touch; returns how many there were before."""
        with self._lock:
            before = self._counts.pop(key, 0)
            self._counts[key] = before + 1
            while len(self._counts) > TOUCHED_MAX:
                self._counts.popitem(last=False)
            return before

    def seen(self, key: object) -> int:
        """How many touches there were."""
        return self._counts.get(key, 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """The types that are looked up instead of loaded, and the reason for every type."""

    probed: frozenset[str]
    reasons: Mapping[str, str]


def choose_access(
    tables: SnapshotTables,
    plan: ReadPlan,
    use: TypeUse,
    access: Access,
    touches: Touches,
    *,
    note: bool = True,
) -> Choice:
    """How an execution reaches each type. ``note``: it takes place and counts as a touch."""
    if access == "cache" or (access == "probe" and not starts_at_lookup(plan, tables)):
        return Choice(frozenset(), dict.fromkeys(use, ASKED))
    if access == "probe":
        probed = frozenset(use) | _ends(tables, use)
        return Choice(probed, dict.fromkeys(probed, ASKED))
    cold = [key for key in sorted(use) if _is_cold(tables, key, use[key])]
    reasons = {key: SMALL if tables.table(key).rows <= SMALL_ROWS_MAX else IN_MEMORY for key in use}
    if not cold:
        return Choice(frozenset(), reasons)
    if not starts_at_lookup(plan, tables):
        return Choice(frozenset(), reasons | dict.fromkeys(cold, NOT_NAMED))
    count = touches.add if note else touches.seen
    if max([count(tables.key(key)) for key in cold]) >= TOUCHES_MAX:
        return Choice(frozenset(), reasons | dict.fromkeys(cold, OFTEN))
    if any(key.startswith("node:") for key in cold):
        # Edges in memory speak of ordinals that looked-up nodes do not have.
        cold += [key for key in use if key.startswith("edge:")]
    return Choice(frozenset(cold), reasons | dict.fromkeys(cold, NAMED))


def starts_at_lookup(plan: ReadPlan, tables: SnapshotTables) -> bool:
    """Whether a plan begins with nodes that an index can name, and only follows edges on."""
    if plan.ranking is not None:
        return False
    course = tables.course(plan.pattern, (), ())
    scans = [step for step, _ in course if isinstance(step, Scan)]
    if not all(
        has_lookup(tables.schema.nodes[item.variable.type.name], item.variable.predicates)
        for item in scans
    ):
        return False
    known = {item.name for item in plan.pattern.variables}
    return all(_only_follows(item.pattern, known, tables.rows) for item in plan.pattern.anti_joins)


def _only_follows(pattern: Pattern, known: Collection[str], rows: Rows) -> bool:
    steps = order_steps(pattern, known, rows)
    inner = {*known, *(item.name for item in pattern.variables)}
    return not any(isinstance(step, Scan) for step in steps) and all(
        _only_follows(item.pattern, inner, rows) for item in pattern.anti_joins
    )


def _ends(tables: SnapshotTables, use: TypeUse) -> frozenset[str]:
    edges = [tables.schema.edges[key[5:]] for key in use if key.startswith("edge:")]
    return frozenset(f"node:{end}" for edge in edges for end in (edge.source, edge.target))


def _is_cold(tables: SnapshotTables, key: str, columns: Collection[str]) -> bool:
    """Whether something large would have to be loaded."""
    table = tables.table(key)
    if table.rows <= SMALL_ROWS_MAX:
        return False
    if isinstance(table, CachedNodes):
        return not table.has_columns(("id", *columns))
    if not table.has_columns(columns):
        return True
    return not (table.has_adjacency("out") or table.has_adjacency("in"))
