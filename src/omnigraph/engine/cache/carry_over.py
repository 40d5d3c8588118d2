"""Carrying adjacency over: from one version of its tables to a later one.

Costs a copy of the arrays instead of reading and sorting every edge again. The result is the same
array for array, which the tests check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from omnigraph.engine.cache.version_mapping import Succession
from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.tables.adjacency import Adjacency
from omnigraph.predicates.values import Ints


class Links(NamedTuple):
    """Edges by their ends: parallel arrays."""

    near: Ints
    far: Ints
    edge: Ints


class Changes(NamedTuple):
    """What became of the nodes at both ends and of the edges; ends of added edges may be -1."""

    near: Succession
    far: Succession
    edges: Succession
    added: Links


def carried_over(old: Adjacency, changes: Changes, near_count: int) -> Adjacency:
    """The adjacency of the later version, which has so many nodes at the near end."""
    near, far, edges, added = changes
    exists = (added.near >= 0) & (added.far >= 0)
    added = Links(*(column[exists] for column in added))
    if any(item.places is not None for item in (near, far, edges)):
        old, taken = _renumbered(old, near, far, edges, near_count)
        added = Links(*(np.concatenate(pair) for pair in zip(taken, added, strict=True)))
    return _grown(old, added, near_count)


def _grown(old: Adjacency, added: Links, near_count: int) -> Adjacency:
    """An adjacency with more edges, all of them after the known ones, and perhaps more nodes."""
    missing = near_count + 1 - len(old.starts)
    if missing:
        starts = np.concatenate((old.starts, np.full(missing, old.starts[-1])))
        old = Adjacency(starts, old.nodes, old.edges)
    near, far, edge = _in_order(added)
    at = old.places(near, far + 1)  # after the known ones between the same nodes
    more = np.zeros(near_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(near, minlength=near_count), out=more[1:])
    return Adjacency(
        old.starts + more, np.insert(old.nodes, at, far), np.insert(old.edges, at, edge)
    )


def _renumbered(
    old: Adjacency, near: Succession, far: Succession, edges: Succession, near_count: int
) -> tuple[Adjacency, Links]:
    """An adjacency after rows have gone or got other places.

    Links whose nodes were moved are taken out, because they are not in order any more; they are
    returned beside it, to be put back with the new ones.
    """
    owner = np.repeat(np.arange(len(old.starts) - 1, dtype=np.int32), np.diff(old.starts))
    owner, node, edge = near.now(owner), far.now(old.nodes), edges.now(old.edges)
    kept = (owner >= 0) & (node >= 0) & (edge >= 0)
    out = np.zeros(len(kept), dtype=bool)
    for column, moved in ((owner, near.moved), (node, far.moved)):
        if len(moved):
            out |= sets.among(column, moved)
    taken = kept & out
    links = Links(owner[taken], node[taken], edge[taken])
    kept &= ~out
    starts = np.zeros(near_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner[kept], minlength=near_count), out=starts[1:])
    return Adjacency(starts, node[kept], edge[kept]), links


def _in_order(links: Links) -> Links:
    order = np.lexsort((links.edge, links.far, links.near))
    return Links(*(column[order] for column in links))
