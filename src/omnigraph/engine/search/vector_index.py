"""Approximate vector search through an IVF index: fast on many vectors, with a bounded recall.

The index returns candidates from the partitions nearest to the query; their distances are measured
exactly here. Used only with ``nearest="indexed"``.
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
"""At least 20 partitions are probed, and at least 1/8 of them."""
CANDIDATE_SHARE: Final = 8
"""When less than 1/8 of the entities are candidates, all candidates are measured exactly."""
ASKED_FACTOR: Final = 4
"""Overfetch: some results are not candidates and are discarded."""
GROWTH: Final = 8
"""Factor of the next request when too few candidates were found."""


def nearest_by_index(
    table: CachedTable, name: str, query: Any, candidates: Ints, count: int, check: Check
) -> tuple[Ints, Any] | None:
    """A superset of the nearest ``count`` candidates that the index finds, in order, with their
    distances; None where there is no index, or where it does not help.
    """
    pinned, declared = table.open(), table.kind.properties[name]
    if count >= len(candidates) or len(candidates) * CANDIDATE_SHARE < table.rows:
        return None
    if vector_index(name) not in stored_indexes(pinned):
        return None
    if DISTANCE in pinned.schema.names:
        return None  # a property of this name hides Lance's own distance column
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
            return None  # the index is exhausted
        asked, probes = asked * GROWTH, probes * GROWTH
    vectors = vectors_of(values_of(found[name], declared.type), declared.vector.metric)
    chosen = np.flatnonzero(mine)[np.argsort(entities[mine])]
    return entities[chosen], vectors.distances(query, chosen)
