"""Access choice: which types are loaded into memory, which are probed through an index, and why.

Types in memory are used as they are. A large type that is not in memory is probed by the first few
selective queries and loaded when queries keep coming. ``explain`` shows the reasons; the result
of a query never depends on the choice.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from omnigraph.engine.plan.join_order import Rows, order_steps
from omnigraph.engine.tables.access import SnapshotTables, TypeUse
from omnigraph.lang.query.plan.logical import Pattern, ReadPlan
from omnigraph.lang.query.plan.steps import Scan
from omnigraph.model.lru import LruCache

Access = Literal["auto", "cache", "probe"]

SMALL_ROWS_MAX: Final = 5_000
"""A type with at most this many entities is always loaded: that takes as long as one look-up."""
PROBES_BEFORE_LOAD: Final = 2
"""A table version that was probed this often is loaded the next time."""
PROBE_COUNTS_MAX: Final = 4_096
"""Table versions whose probes are counted."""

IN_MEMORY: Final = "in memory"
SMALL: Final = "small enough to be loaded at once"
NAMED: Final = "not in memory, and the query starts at an index lookup"
NOT_NAMED: Final = "not in memory, and the query does not start at an index lookup"
OFTEN: Final = "probed often enough that it is loaded"
ASKED: Final = "requested by the caller"
NOT_PROBED: Final = "loaded, because the query does not start at an index lookup"


class ProbeCounts:
    """How often table versions were probed without being loaded. Thread-safe and bounded."""

    def __init__(self) -> None:
        self._counts: LruCache[str, int] = LruCache(PROBE_COUNTS_MAX)
        self._lock = threading.Lock()

    def add(self, key: str) -> int:
        """Count a probe; returns how many there were before."""
        with self._lock:
            before = self._counts.get(key) or 0
            self._counts.put(key, before + 1)
            return before

    def seen(self, key: str) -> int:
        """How many probes there were."""
        return self._counts.get(key) or 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The types that are probed instead of loaded, and the reason for every type."""

    probed: frozenset[str]
    reasons: Mapping[str, str]


def choose_access(
    tables: SnapshotTables,
    plan: ReadPlan,
    use: TypeUse,
    access: Access,
    probe_counts: ProbeCounts,
    *,
    record: bool = True,
) -> Choice:
    """The access path of each type. ``record``: the query runs, so its probes are counted."""
    if access == "cache":
        return Choice(frozenset(), dict.fromkeys(use, ASKED))
    if access == "probe":
        if not starts_at_lookup(plan, tables):
            return Choice(frozenset(), dict.fromkeys(use, NOT_PROBED))
        probed = frozenset(use) | _ends(tables, use)
        return Choice(probed, dict.fromkeys(probed, ASKED))
    cold = [key for key in sorted(use) if _is_cold(tables, key, use[key])]
    reasons = {key: SMALL if tables.table(key).rows <= SMALL_ROWS_MAX else IN_MEMORY for key in use}
    if not cold:
        return Choice(frozenset(), reasons)
    if not starts_at_lookup(plan, tables):
        return Choice(frozenset(), reasons | dict.fromkeys(cold, NOT_NAMED))
    count = probe_counts.add if record else probe_counts.seen
    if max([count(tables.key(key)) for key in cold]) >= PROBES_BEFORE_LOAD:
        return Choice(frozenset(), reasons | dict.fromkeys(cold, OFTEN))
    if any(key.startswith("node:") for key in cold):
        # The adjacency in memory refers to ordinals that probed nodes do not have.
        cold += [key for key in use if key.startswith("edge:")]
    return Choice(frozenset(cold), reasons | dict.fromkeys(cold, NAMED))


def starts_at_lookup(plan: ReadPlan, tables: SnapshotTables) -> bool:
    """Whether every scan of a plan can use an index, so that the rest only follows edges."""
    if plan.ranking is not None:
        return False
    if not tables.scans_by_lookup(plan.pattern):
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
    """Whether something large would have to be loaded first."""
    table = tables.table(key)
    return table.rows > SMALL_ROWS_MAX and not table.is_resident(columns)
