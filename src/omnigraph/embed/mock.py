"""The mock provider: deterministic vectors that depend on the text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.embed.provider import EmbeddingTask

_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class MockProvider:
    model: str = ""
    kind: str = "mock"

    def embed(self, text: str, dimensions: int, task: EmbeddingTask) -> Sequence[float]:
        state = fnv1a(text.encode("utf-8"))
        numbers = []
        for _ in range(dimensions):
            state ^= (state << 13) & _MASK
            state ^= state >> 7
            state ^= (state << 17) & _MASK
            numbers.append(float(np.float32(state / _MASK) * np.float32(2) - np.float32(1)))
        return numbers

    def embed_many(
        self, texts: Sequence[str], dimensions: int, task: EmbeddingTask
    ) -> Sequence[Sequence[float]]:
        return [self.embed(text, dimensions, task) for text in texts]


def fnv1a(data: bytes) -> int:
    """The 64-bit FNV-1a hash."""
    state = _FNV_OFFSET
    for byte in data:
        state = ((state ^ byte) * _FNV_PRIME) & _MASK
    return state
