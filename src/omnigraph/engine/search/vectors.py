"""Exact vector search: distances to a query vector.

The distance is the metric of the property (squared Euclidean, cosine distance, or one minus the dot
product), computed in double precision. On many vectors a single-precision estimate with an error
bound selects candidates first, which keeps the result exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from omnigraph.engine.exec import integer_sets as sets
from omnigraph.lang.schema.parts import Metric
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask, Values

CHUNK_ROWS: Final = 8_192
"""Vectors that are widened to 64 bits at a time."""
ESTIMATE_ROWS_MIN: Final = 20_000
"""Fewer vectors are measured without an estimate."""
GATHER_SHARE: Final = 4
"""When less than 1/4 of the vectors are candidates, those are gathered; otherwise all are
multiplied, which is faster."""
_SINGLE_EPSILON: Final = 2.0**-23
_NORM_MIN: Final = 1e-24
_NORM_MAX: Final = 1e24
"""Squared lengths for which the error bound of the estimate holds."""


@dataclass(frozen=True)
class Vectors:
    """A vector property of all entities, as a matrix."""

    matrix: Any
    valid: Mask | None
    metric: Metric = "l2"

    @property
    def nbytes(self) -> int:
        return int(self.matrix.nbytes) + 4 * len(self.matrix)

    @cached_property
    def _norms(self) -> Any:
        with np.errstate(all="ignore"):
            return chunked.mapped(lambda part: np.einsum("ij,ij->i", part, part), self.matrix)

    @cached_property
    def _extreme(self) -> Any:
        """Vectors whose squared length underflows or overflows in single precision."""
        usual = (self._norms > _NORM_MIN) & (self._norms < _NORM_MAX)
        others = np.flatnonzero(~usual)
        return others[self.matrix[others].any(axis=1)]

    def distances(self, query: Any, rows: Ints) -> Any:
        """The distance of each of these rows."""
        found = np.empty(len(rows), dtype=np.float64)
        for some in chunked.chunks(len(rows), CHUNK_ROWS):
            part = self.matrix[rows[some]].astype(np.float64)
            found[some] = self._measured(part, query)
        return found

    def _measured(self, part: Any, query: Any) -> Any:
        if self.metric == "l2":
            part -= query
            return np.einsum("ij,ij->i", part, part)
        products = np.einsum("ij,j->i", part, query)
        if self.metric == "dot":
            return 1.0 - products
        lengths = np.sqrt(np.einsum("ij,ij->i", part, part)) * np.linalg.norm(query)
        # A zero vector has no direction; it counts as orthogonal.
        return 1.0 - np.divide(products, lengths, out=np.zeros(len(part)), where=lengths > 0)

    def present(self, rows: Ints) -> Mask:
        if self.valid is None:
            return np.ones(len(rows), dtype=bool)
        return chunked.take(self.valid, rows)

    def possible_nearest(self, query: Any, rows: Ints, count: int) -> Ints:
        """A superset of the nearest ``count`` rows, by an estimate in single precision."""
        if len(rows) < ESTIMATE_ROWS_MIN or count >= len(rows):
            return rows
        if not _NORM_MIN < float(query @ query) < _NORM_MAX:
            return rows
        if len(self._extreme):
            extreme = sets.among(rows, self._extreme)
            if extreme.any():
                usual = self.possible_nearest(query, rows[~extreme], count)
                return sets.union(usual, rows[extreme])
        return self._estimated_nearest(query, rows, count)

    def _estimated_nearest(self, query: Any, rows: Ints, count: int) -> Ints:
        single = query.astype(np.float32)
        if len(rows) * GATHER_SHARE < len(self.matrix):
            products = chunked.mapped(lambda part: self.matrix[part] @ single, rows)
            norms = chunked.take(self._norms, rows)
        else:
            with np.errstate(all="ignore"):  # of extreme ones, which are not among the rows
                products = chunked.mapped(lambda part: part @ single, self.matrix)
            norms = self._norms
            if len(rows) < len(self.matrix):
                products, norms = chunked.take(products, rows), chunked.take(norms, rows)
        estimate, scale = self._estimated(norms, products, float(np.linalg.norm(query)))
        error = 8 * self.matrix.shape[1] * _SINGLE_EPSILON * scale
        bound = np.partition(estimate, count - 1)[count - 1] + 2 * error
        return np.asarray(rows[estimate <= bound])

    def _estimated(self, norms: Any, products: Any, length: float) -> tuple[Any, float]:
        """Estimates that sort like the distances, and the scale of their rounding error."""
        longest = float(np.sqrt(norms.max(initial=0.0)))
        if self.metric == "l2":
            return norms - 2 * products, (longest + length) ** 2
        if self.metric == "dot":
            return -products, longest * length
        lengths = np.sqrt(norms) * np.float32(length)
        cosines = np.zeros(len(norms), dtype=np.float32)
        np.divide(products, lengths, out=cosines, where=lengths > 0)
        return -cosines, 4.0


def vectors_of(column: Values, metric: Metric = "l2") -> Vectors:
    """A vector column as a matrix, without copying it."""
    array = column.data
    width = column.type.dimensions or 1
    flat = array.values.slice(array.offset * width, len(array) * width)
    matrix = flat.to_numpy(zero_copy_only=False).reshape(len(array), width)
    valid = None
    if array.null_count:
        valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
        matrix = np.where(valid[:, None], matrix, np.float32(0))
    return Vectors(np.asarray(matrix, dtype=np.float32), valid, metric)
