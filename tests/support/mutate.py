"""Broken texts for fuzzing: random characters, random tokens, and mutations of good texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

SNIPPETS: Final = (
    *("{", "}", "(", ")", "[", "]", ":", ",", "?", "@", "->", "..", "-", "=", "<", ">", "!=", "$x"),
    *('"', '"a"', '"\\n"', '"\\q"', "//", "/*", "*/", "// c\n", "/* c */", "\\", "'", "#", ";"),
    *("0", "7", "1.5", "-3", "9" * 30, "9" * 400, "1.", ".5", "1e9", "_", "x", "Abc", "é", "日本"),
    *("\x00", "\ufeff", "\u2028", "\U0001f600", "\t", "\r", "\n", " ", "\ud800"),
    *("node", "edge", "interface", "implements", "enum", "Vector", "String", "I32", "Blob"),
    *("@key", "@key(x)", "@unique", "@index", "@range(x, 0..1)", '@check(x, "(")', "@card(0..1)"),
    *("@embed(x)", '@rename_from("A")', '@description("")', "node A {", "edge E: A -> A"),
    *("query q() {", "match", "return", "order", "limit", "insert", "update", "delete", "not {"),
)


def random_text(rng: Random, good: Sequence[str]) -> str:
    """One text that is probably wrong; ``good`` are right ones to start from."""
    kind = rng.random()
    if kind < 0.1 or not good:
        return "".join(
            chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) for _ in range(40)
        )
    if kind < 0.3:
        return rng.choice(("", " ")).join(rng.choices(SNIPPETS, k=rng.randint(1, 40)))
    text = rng.choice(good)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        text = rng.choice(_MUTATIONS)(rng, text)
    return text[:20_000]


def _cut(rng: Random, text: str) -> tuple[int, int]:
    start = rng.randint(0, len(text))
    return start, min(len(text), start + rng.choice((1, 1, 2, 5, 20, 200)))


def _delete(rng: Random, text: str) -> str:
    start, end = _cut(rng, text)
    return text[:start] + text[end:]


def _insert(rng: Random, text: str) -> str:
    start, _ = _cut(rng, text)
    return text[:start] + rng.choice(SNIPPETS) + text[start:]


def _replace(rng: Random, text: str) -> str:
    start, end = _cut(rng, text)
    return text[:start] + rng.choice(SNIPPETS) + text[end:]


def _repeat(rng: Random, text: str) -> str:
    start, end = _cut(rng, text)
    return text[:end] + text[start:end] * rng.choice((1, 2, 50)) + text[end:]


def _move(rng: Random, text: str) -> str:
    start, end = _cut(rng, text)
    rest = text[:start] + text[end:]
    place = rng.randint(0, len(rest))
    return rest[:place] + text[start:end] + rest[place:]


def _truncate(rng: Random, text: str) -> str:
    return text[: rng.randint(0, len(text))]


_MUTATIONS: Final[tuple[Callable[[Random, str], str], ...]] = (
    *(_delete, _insert, _insert, _replace, _replace),
    *(_repeat, _move, _truncate),
)
