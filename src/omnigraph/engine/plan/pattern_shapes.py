"""Shapes of patterns that can be matched in a shorter way than by enumerating their nodes."""

from __future__ import annotations

from omnigraph.lang.query.plan.logical import AntiJoin, Expand, Pattern


def is_single_edge(expand: Expand) -> bool:
    """Whether an edge pattern is a set of pairs: one hop between two nodes, the edge unnamed."""
    return expand.is_one_hop and expand.edge_variable is None and expand.source != expand.target


def absent_edge(anti_join: AntiJoin) -> Expand | None:
    """The edge between two outer nodes that an anti-join forbids, if that is all it does."""
    pattern = anti_join.pattern
    if pattern.variables or pattern.filters or pattern.anti_joins or len(pattern.expands) != 1:
        return None
    return pattern.expands[0] if is_single_edge(pattern.expands[0]) else None


def open_edge_start(pattern: Pattern) -> str | None:
    """The outer variable of a pattern that is one edge to any node."""
    if len(pattern.expands) != 1 or pattern.filters or pattern.anti_joins:
        return None
    expand = pattern.expands[0]
    if any(item.predicates for item in pattern.variables) or not expand.is_one_hop:
        return None
    bound = {item.name for item in pattern.variables}
    ends = [name for name in (expand.source, expand.target) if name not in bound]
    return ends[0] if len(ends) == 1 and not expand.undirected else None


def both_ways(expand: Expand) -> tuple[tuple[str, str], tuple[str, str]]:
    """The ends of an edge, from one to the other and back."""
    return (expand.source, expand.target), (expand.target, expand.source)
