"""Size-tiered choice of the fragments to compact, as in log-structured merge trees.

Rewriting everything each time costs in proportion to the table; never rewriting makes every commit
cost in proportion to the number of fragments. So the small fragments are taken, and a larger one
only when the smaller ones together are comparable to it. A row is then rewritten a logarithmic
number of times.
"""

from __future__ import annotations

from collections.abc import Mapping

SMALL_FRAGMENTS_MAX = 48  # past this many small fragments a table is compacted (0.15 ms each)
SMALL_FRAGMENT_ROWS = 4_096  # a fragment of fewer rows counts as small
REWRITE_ROWS_MAX = 1 << 20  # a fragment of more rows is never rewritten by light upkeep
GROWTH = 4  # a larger fragment joins when it holds at most this many times the rows below it


def needs_compaction(sizes: Mapping[int, int]) -> bool:
    """Whether a table with these fragment sizes has too many small fragments."""
    return sum(1 for rows in sizes.values() if rows < SMALL_FRAGMENT_ROWS) > SMALL_FRAGMENTS_MAX


def choose_fragments(sizes: Mapping[int, int]) -> set[int]:
    """The fragments to rewrite: the small ones and each larger one that is in proportion."""
    chosen: set[int] = set()
    rows_chosen = 0
    for fragment_id, rows in sorted(sizes.items(), key=lambda item: item[1]):
        if rows >= REWRITE_ROWS_MAX:
            break
        if rows >= SMALL_FRAGMENT_ROWS and rows > GROWTH * rows_chosen:
            break
        chosen.add(fragment_id)
        rows_chosen += rows
    return chosen
