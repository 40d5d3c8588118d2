"""Incremental update of an adjacency to a later version of its tables.

Costs a copy of the arrays instead of reading and sorting every edge. The result equals a full
rebuild, array for array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omnigraph.engine.cache.row_mapping import RowMapping
from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.tables.adjacency import Adjacency
from omnigraph.predicates.values import Ints


class EdgeArrays(NamedTuple):
    """Edges and their ends, as parallel arrays."""

    near: Ints
    far: Ints
    edge: Ints


class AdjacencyChanges(NamedTuple):
    """Row mappings of both node types and of the edges; ends of added edges may be -1."""

    near: RowMapping
    far: RowMapping
    edges: RowMapping
    added: EdgeArrays


def updated_adjacency(old: Adjacency, changes: AdjacencyChanges, near_count: int) -> Adjacency:
    """The adjacency of the later version, which has ``near_count`` nodes at the near end."""
    near, far, edges, added = changes
    exists = (added.near >= 0) & (added.far >= 0)
    added = EdgeArrays(*(column[exists] for column in added))
    if any(item.ordinals is not None for item in (near, far, edges)):
        old, taken = _renumbered(old, near, far, edges, near_count)
        added = EdgeArrays(*(np.concatenate(pair) for pair in zip(taken, added, strict=True)))
    return _grown(old, added, near_count)


def _grown(old: Adjacency, added: EdgeArrays, near_count: int) -> Adjacency:
    """The adjacency with added edges, whose ordinals follow the known ones, and added nodes."""
    missing = near_count + 1 - len(old.starts)
    if missing:
        starts = np.concatenate((old.starts, np.full(missing, old.starts[-1])))
        old = Adjacency(starts, old.nodes, old.edges)
    near, far, edge = _in_order(added)
    at = old.places(near, far + 1)  # after known parallel edges
    more = np.zeros(near_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(near, minlength=near_count), out=more[1:])
    return Adjacency(
        old.starts + more, np.insert(old.nodes, at, far), np.insert(old.edges, at, edge)
    )


def _renumbered(
    old: Adjacency, near: RowMapping, far: RowMapping, edges: RowMapping, near_count: int
) -> tuple[Adjacency, EdgeArrays]:
    """The adjacency after rows were removed or got new ordinals.

    Edges of moved nodes are removed, because they are no longer in order, and are
    returned separately, to be inserted with the new ones.
    """
    owner = np.repeat(np.arange(len(old.starts) - 1, dtype=np.int32), np.diff(old.starts))
    owner, node, edge = near.map(owner), far.map(old.nodes), edges.map(old.edges)
    kept = (owner >= 0) & (node >= 0) & (edge >= 0)
    out = np.zeros(len(kept), dtype=bool)
    for column, moved in ((owner, near.moved), (node, far.moved)):
        if len(moved):
            out |= sets.among(column, moved)
    taken = kept & out
    links = EdgeArrays(owner[taken], node[taken], edge[taken])
    kept &= ~out
    starts = np.zeros(near_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner[kept], minlength=near_count), out=starts[1:])
    return Adjacency(starts, node[kept], edge[kept]), links


def _in_order(links: EdgeArrays) -> EdgeArrays:
    order = np.lexsort((links.edge, links.far, links.near))
    return EdgeArrays(*(column[order] for column in links))
