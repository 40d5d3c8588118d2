"""Did you mean …? The closest known name to an unknown one.

Bounded work: very long names and very many candidates are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

CANDIDATES_MAX: Final = 2_000
NAME_LENGTH_MAX: Final = 64


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate a person most likely meant, or None when nothing is close enough."""
    if not name or len(name) > NAME_LENGTH_MAX:
        return None
    folded = name.casefold()
    allowed = 1 if len(name) <= 4 else 2 if len(name) <= 8 else 3
    best: tuple[int, str] | None = None
    for candidate in islice(candidates, CANDIDATES_MAX):
        if candidate == name or abs(len(candidate) - len(name)) > allowed:
            continue
        distance = _distance(folded, candidate.casefold(), allowed)
        if distance <= allowed and distance < len(name):
            best = min(best, (distance, candidate)) if best else (distance, candidate)
    return best[1] if best else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The same as a sentence for ``Diagnostic.hint``."""
    found = closest(name, candidates)
    return f"did you mean `{found}`?" if found else None


def _distance(left: str, right: str, limit: int) -> int:
    """Edits between two words, where swapping neighbours is one edit; stops past ``limit``."""
    if left == right:
        return 0
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, char in enumerate(left, 1):
        current = [i]
        for j, other in enumerate(right, 1):
            cost = min(
                previous[j] + 1,
                current[j - 1] + 1,
                previous[j - 1] + (char != other),
            )
            if i > 1 and j > 1 and char == right[j - 2] and left[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return previous[-1]
