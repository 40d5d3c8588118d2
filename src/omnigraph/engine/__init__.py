"""Reading: executes checked queries on pinned snapshots. Never writes to a graph.

Frames hold the positions of entities, not their values; values are fetched where a condition, an
order or an answer needs them. Everything derived (adjacency, columns, text postings) belongs to
immutable versions of tables and can be dropped at any time: it changes how long an answer takes,
never the answer.
"""
