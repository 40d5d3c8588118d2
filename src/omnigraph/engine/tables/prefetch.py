"""Looking ahead on first touch: the edges of the node a query starts at.

A query that names its first node by its key and goes on along edges needs the node and its edges.
Edges know their nodes by id, and the id is the key: they are read while the node is looked up, on
another processor. What was read for a node that turns out not to exist is not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from omnigraph.engine.exec.evaluate import Evaluator
from omnigraph.engine.exec.scan import names_key
from omnigraph.engine.tables.access import ProbingTables
from omnigraph.engine.tables.loaded import Direction
from omnigraph.engine.tables.probe import ProbedEdges
from omnigraph.lang.query.plan.logical import Pattern
from omnigraph.lang.query.plan.steps import Follow, Scan


@contextmanager
def looking_ahead(
    tables: ProbingTables,
    pattern: Pattern,
    needed: Collection[str],
    evaluator: Evaluator,
) -> Iterator[None]:
    """While a pattern is matched; nothing is being read any more afterwards."""
    edges = _begun(tables, pattern, needed, evaluator)
    try:
        yield
    finally:
        if edges is not None:
            edges.settle()


def _begun(
    tables: ProbingTables, pattern: Pattern, needed: Collection[str], evaluator: Evaluator
) -> ProbedEdges | None:
    """The edges that are being read now."""
    match [step for step, _ in tables.course(pattern, (), (), needed)]:
        case [
            Scan(variable=variable),
            Follow(expand=expand, found=found),
            *_,
        ] if not expand.is_impossible:
            kind = tables.nodes(variable.type.name).kind
            edges = tables.edges(expand.edge.name)
            named = names_key(kind, variable.predicates)  # type: ignore[arg-type]
            if named is None or not isinstance(edges, ProbedEdges):
                return None
            id = evaluator.literal(named.right).value
            if not isinstance(id, str):
                return None
            way: Direction = "out" if found.name == expand.target else "in"
            for direction in ("out", "in") if expand.undirected else (way,):
                edges.begin_edges_of(direction, id)
            return edges
    return None
