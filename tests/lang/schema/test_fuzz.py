"""No text, however broken, may do anything but compile or be refused with diagnostics, soon.

The normal suite tries a few thousand texts; ``OMNIGRAPH_FUZZ_N=300000`` tries that many.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from types import FrameType

import pytest
from tests.lang.schema.support import MUS
from tests.support.generate_schema import generate_schema
from tests.support.mutate import random_text

from omnigraph.lang.schema import accept_schema, format_schema
from omnigraph.lang.syntax import TEXT_BYTES_MAX, SourceError

FUZZ_N = int(os.environ.get("OMNIGRAPH_FUZZ_N", "2000"))
TEXT_SECONDS_MAX = 10
"""Processor time, far above what any text needs; a loop that never ends is what this finds."""


@contextmanager
def time_limit(text: str) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise AssertionError(f"this text takes too long: {text[:500]!r}")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, TEXT_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def compiles(text: str) -> bool:
    """Whether a text compiles; everything but that and a refusal that can be shown fails."""
    numbers = count()
    with time_limit(text):
        try:
            schema = accept_schema(text, mint=lambda: str(next(numbers)))
        except SourceError as error:
            return not error.render()
        pretty = format_schema(text)
        assert format_schema(pretty) == pretty
        assert accept_schema(pretty, mint=lambda: str(next(numbers))).hash == schema.hash
    return True


def test_broken_texts_are_refused_with_diagnostics() -> None:
    rng = Random(20_240_229)
    good = [MUS, *(generate_schema(rng).text(rng) for _ in range(200))]
    accepted = sum(compiles(random_text(rng, good)) for _ in range(FUZZ_N))
    assert 0 < accepted < FUZZ_N


HUGE = {
    "braces": "{" * 100_000,
    "open nodes": "node A { " * 30_000,
    "open enums": "node A { x: enum(" * 20_000,
    "annotations": "node A {x: I32 " + "@a(1)" * 10_000 + "}",
    "errors": "# " * 100_000,
    "one long line": "node A { x: I32 } " * 20_000,
    "long name": "node " + "A" * 500_000 + " {}",
    "long number": "node A { x: Vector(" + "9" * 500_000 + ") }",
    "many members": "node A { x: enum(" + ",".join(f"m{i}" for i in range(20_000)) + ") }",
    "many columns": "node A { x: I32 @unique(" + ",".join(["x"] * 20_000) + ") }",
    "deep pattern": 'node A { x: String @check(x, "' + "(" * 1900 + '") }',
    "similar names": "".join(
        f"node Abcdefgh{i} {{}} edge E{i}: Abcdefg -> X " for i in range(3000)
    ),
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_huge_texts_take_bounded_time(text: str) -> None:
    compiles(text)


def test_a_text_above_the_limit_is_refused() -> None:
    with pytest.raises(SourceError, match="P006"):
        accept_schema("/" + "/" * TEXT_BYTES_MAX, mint=str)
    with pytest.raises(SourceError, match="P006"):
        accept_schema("é" * (TEXT_BYTES_MAX // 2 + 1), mint=str)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(SourceError, match="P008"):
        accept_schema('node A @description("\ud800") {}', mint=str)
