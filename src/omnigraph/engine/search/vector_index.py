"""Vector search through an index: quick in very many vectors, though some nearest may be missed.

The index names candidates, from the partitions whose middle is near what is searched for. How far
they are is measured here, as exactly as without it. Only for those who ask for it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from omnigraph.engine.limits import Check
from omnigraph.engine.search.vectors import vectors_of
from omnigraph.engine.tables.loaded import CachedTable
from omnigraph.predicates.values import Ints, values_of
from omnigraph.storage.lance.staging.indexes import stored_indexes, vector_index
from omnigraph.storage.lance.tables import DISTANCE

PROBES_MIN: Final = 20
PROBED_SHARE: Final = 8
"""So many partitions are looked at, or one in so many of them."""
CANDIDATE_SHARE: Final = 8
"""When less than one in so many entities may be found, all of those are measured."""
ASKED_FACTOR: Final = 4
"""More are asked for than wanted: not all of them may be found."""
GROWTH: Final = 8
"""So many times as much is asked for when that was not enough."""


def nearest_by_index(
    table: CachedTable, name: str, query: Any, candidates: Ints, count: int, check: Check
) -> tuple[Ints, Any] | None:
    """Candidates with the nearest that the index finds, in their order, and how far they are; None
    where there is no index, or it would be no help.
    """
    pinned, declared = table.open(), table.kind.properties[name]
    if count >= len(candidates) or len(candidates) * CANDIDATE_SHARE < table.rows:
        return None
    if vector_index(name) not in stored_indexes(pinned):
        return None
    if DISTANCE in pinned.schema.names:
        return None  # a property: Lance cannot answer with a column of this name of its own
    allowed = np.zeros(table.rows, dtype=bool)
    allowed[candidates] = True
    partitions = declared.vector.partitions
    asked, probes = count * ASKED_FACTOR, max(PROBES_MIN, partitions // PROBED_SHARE)
    while True:
        check()
        asked = min(asked, table.rows)
        found = pinned.nearest(name, query, asked, probes, declared.vector.metric)
        entities = table.ordinals_at(found)
        mine = allowed[entities]
        if np.count_nonzero(mine) >= count:
            break
        if asked == table.rows or (probes >= partitions and found.num_rows < asked):
            return None  # it has no more
        asked, probes = asked * GROWTH, probes * GROWTH
    vectors = vectors_of(values_of(found[name], declared.type), declared.vector.metric)
    chosen = np.flatnonzero(mine)[np.argsort(entities[mine])]
    return entities[chosen], vectors.distances(query, chosen)
