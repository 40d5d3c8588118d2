"""The interface of embedding providers, and validation and caching of their vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import numpy as np

from omnigraph.errors import EmbeddingFailure
from omnigraph.model.lru import LruCache

EmbeddingTask = Literal["query", "document"]
VECTORS_MAX: Final = 1_024
"""How many vectors are cached, so that a repeated search sends no request."""

Vector = tuple[float, ...]


class Provider(Protocol):
    """Computes embeddings: of one text, or of several in as few requests as possible."""

    @property
    def kind(self) -> str: ...

    @property
    def model(self) -> str: ...

    def embed(self, text: str, dimensions: int, task: EmbeddingTask) -> Sequence[float]: ...

    def embed_many(
        self, texts: Sequence[str], dimensions: int, task: EmbeddingTask
    ) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True, slots=True)
class Embedder:
    """A provider whose vectors are checked and cached. Thread-safe."""

    provider: Provider
    _vectors: LruCache[tuple[str, int, str], Vector] = field(
        default_factory=lambda: LruCache(VECTORS_MAX), repr=False, compare=False
    )

    def embed(
        self,
        text: str,
        dimensions: int,
        *,
        task: EmbeddingTask = "query",
        model: str | None = None,
    ) -> Vector:
        """The unit vector of a text. ``model``: the model that the property requires."""
        if model is not None and model != self.provider.model:
            raise EmbeddingFailure(
                f"the property uses embedding model {model!r}, "
                f"but the provider uses {self.provider.model!r}",
                remedy=f"Set OMNIGRAPH_EMBED_MODEL={model}, or pass a vector.",
                details={"expected_model": model, "actual_model": self.provider.model},
            )
        key = (text, dimensions, task)
        vector = self._vectors.get(key)
        if vector is None:
            vector = checked_unit(self.provider.embed(text, dimensions, task), dimensions)
            self._vectors.put(key, vector)
        return vector


def checked_unit(numbers: Sequence[float], dimensions: int) -> Vector:
    """Validate a vector of ``dimensions`` numbers and scale it to unit length, in 32-bit floats."""
    if len(numbers) != dimensions:
        raise EmbeddingFailure(
            f"the embedding provider returned {len(numbers)} numbers, expected {dimensions}",
            remedy=f"Use a model that supports {dimensions} dimensions.",
            details={"expected": dimensions, "actual": len(numbers)},
        )
    with np.errstate(over="ignore"):
        single = np.array(numbers, dtype=np.float32)
    length = math.sqrt(float(np.sum(single.astype(np.float64) ** 2)))
    if not np.isfinite(single).all() or not math.isfinite(length) or length == 0:
        raise EmbeddingFailure(
            "the embedding provider returned a vector that is zero or not finite"
        )
    unit = (single.astype(np.float64) / length).astype(np.float32)
    return tuple(unit.tolist())
