"""Prefetch for probed tables: the edges of the node that a query starts at.

A query that selects its first node by key and then expands edges reads the node and its edges.
Edges store the ids of their nodes, and the id is the key: so the edges are read in another thread
while the node is looked up. If the node does not exist, what was read is discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.scan import names_key
from omnigraph.engine.tables.access import ProbingTables, SnapshotTables
from omnigraph.engine.tables.loaded import Direction
from omnigraph.engine.tables.probe import EdgeTable
from omnigraph.lang.query.plan.logical import Pattern
from omnigraph.lang.query.plan.steps import Follow, Scan


@contextmanager
def edges_prefetched(
    tables: SnapshotTables | ProbingTables,
    pattern: Pattern,
    needed: Collection[str],
    evaluator: Evaluator,
) -> Iterator[None]:
    """Prefetch edges while the block matches a pattern; all reads have ended afterwards."""
    edges = _begin(tables, pattern, needed, evaluator)
    try:
        yield
    finally:
        if edges is not None:
            edges.finish_prefetch()


def _begin(
    tables: SnapshotTables | ProbingTables,
    pattern: Pattern,
    needed: Collection[str],
    evaluator: Evaluator,
) -> EdgeTable | None:
    """Start the prefetch; returns the table that is read, or None."""
    match [item.step for item in tables.step_order(pattern, (), (), needed).steps]:
        case [
            Scan(variable=variable),
            Follow(expand=expand, found=found),
            *_,
        ] if not expand.is_impossible:
            kind = tables.nodes(variable.type.name).kind
            edges = tables.edges(expand.edge.name)
            named = names_key(kind, variable.predicates)  # type: ignore[arg-type]
            if named is None:
                return None
            id = evaluator.literal(named.right).value
            if not isinstance(id, str):
                return None
            way: Direction = "out" if found.name == expand.target else "in"
            for direction in ("out", "in") if expand.undirected else (way,):
                edges.prefetch(direction, id)
            return edges
    return None
