"""Reading: executes checked queries on pinned snapshots. Never writes to a graph.

Frames hold the ordinals of entities, not their values; values are fetched where a condition, a sort
or a result needs them. Everything derived (adjacency, columns, text postings) belongs to immutable
table versions and can be evicted at any time: that changes how long a query takes, never its
result.
"""
