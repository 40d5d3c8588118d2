"""What a provider is, and what is required of every vector it gives."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Literal, Protocol

import numpy as np

from omnigraph.errors import EmbeddingFailure

EmbeddingTask = Literal["query", "document"]
REMEMBERED_MAX: Final = 1_024
"""Query texts whose vectors are kept: a repeated search costs no request."""

Vector = tuple[float, ...]


class Provider(Protocol):
    """Turns texts into numbers: one, or several with as few requests as it can."""

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
    """A provider whose answers are checked and remembered. Thread-safe."""

    provider: Provider
    _remembered: OrderedDict[tuple[str, int, str], Vector] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def embed(
        self,
        text: str,
        dimensions: int,
        *,
        task: EmbeddingTask = "query",
        model: str | None = None,
    ) -> Vector:
        """A unit vector of this many dimensions. ``model``: the one it has to come from."""
        if model is not None and model != self.provider.model:
            raise EmbeddingFailure(
                f"the property's vectors are of model {model!r}, "
                f"and the provider's model is {self.provider.model!r}",
                remedy=f"Set OMNIGRAPH_EMBED_MODEL={model}, or pass a vector.",
                details={"expected_model": model, "actual_model": self.provider.model},
            )
        key = (text, dimensions, task)
        with self._lock:
            found = self._remembered.get(key)
            if found is not None:
                self._remembered.move_to_end(key)
                return found
        made = checked_unit(self.provider.embed(text, dimensions, task), dimensions)
        with self._lock:
            self._remembered[key] = made
            while len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return made


def checked_unit(numbers: Sequence[float], dimensions: int) -> Vector:
    """Refuse what is no vector of this width; scale the rest to length one, as 32-bit floats."""
    if len(numbers) != dimensions:
        raise EmbeddingFailure(
            f"the provider gave {len(numbers)} numbers instead of {dimensions}",
            remedy="Use a model that can give vectors of the property's width.",
            details={"expected": dimensions, "actual": len(numbers)},
        )
    with np.errstate(over="ignore"):
        single = np.array(numbers, dtype=np.float32)
    length = math.sqrt(float(np.sum(single.astype(np.float64) ** 2)))
    if not np.isfinite(single).all() or not math.isfinite(length) or length == 0:
        raise EmbeddingFailure("the provider gave a vector that is zero or not finite")
    unit = (single.astype(np.float64) / length).astype(np.float32)
    return tuple(unit.tolist())
