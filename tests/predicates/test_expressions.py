"""One evaluator: a condition means the same as a filter, a column, a ``where`` and a new value.

And it partitions the rows: a condition, its negation and its null test take every row once.
``OMNIGRAPH_TEST_EXPRESSIONS`` is how many conditions are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from omnigraph.errors import CalculationFailed
from omnigraph.lang.syntax import SourceError
from tests.predicates.expressions import ConditionMaker, in_mutation, in_query
from tests.predicates.surfaces import COLD, TAGS, WARM, Held, answer, make

DRAWN = int(os.environ.get("OMNIGRAPH_TEST_EXPRESSIONS", "160"))
SEED = int(os.environ.get("OMNIGRAPH_TEST_EXPRESSIONS_SEED", "1"))
REFUSED_MAX = 0.3
"""Of the conditions drawn may have types that do not fit, such as a literal out of range."""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return make(tmp_path_factory.mktemp("expressions") / "graph", 1)


def _drawn() -> Iterator[str]:
    for number in range(DRAWN):
        yield ConditionMaker(Random(f"{SEED}/{number}")).condition()


def _found(held: Held, condition: str) -> list[str]:
    text = f"query q() {{ match {{ $n: Thing  ({in_query(condition)}) }} return {{ $n.k as k }} }}"
    found = answer(held.graph, text, {}, WARM)
    assert answer(held.graph, text, {}, COLD) == found, text
    return found


def test_a_condition_its_negation_and_its_null_test_partition_the_rows(held: Held) -> None:
    refused = failed = 0
    for condition in _drawn():
        text = (
            "query q() { match { $n: Thing } "
            f"return {{ $n.k as k, ({in_query(condition)}) as c }} }}"
        )
        try:
            rows = held.graph.query(text, options=WARM).rows()
        except SourceError:
            refused += 1
            continue
        except CalculationFailed:
            failed += 1
            continue
        values = {row["k"]: row["c"] for row in rows}
        try:
            for truth, tested in (
                (True, condition),
                (False, f"not ({condition})"),
                (None, f"({condition}) is null"),
            ):
                expected = sorted(key for key, value in values.items() if value is truth)
                assert _found(held, tested) == expected, (tested, condition)
        except CalculationFailed:  # of several parts that can fail, another comes first here
            failed += 1
    assert refused <= REFUSED_MAX * DRAWN, refused
    assert failed <= REFUSED_MAX * DRAWN, failed


def test_mutations_agree_with_queries(tmp_path: Path) -> None:
    held = make(tmp_path / "graph", 1)
    usable: list[tuple[str, list[str]]] = []
    for condition in _drawn():
        try:
            usable.append((condition, _found(held, condition)))
        except (SourceError, CalculationFailed):
            continue
        if len(usable) == 2 * TAGS:
            break
    for start in range(0, len(usable), TAGS // 2):
        batch = usable[start : start + TAGS // 2]
        statements = [
            f"update Thing set {{ tag{2 * at}: {start + 1} }} where {in_mutation(condition)} "
            f"update Thing set {{ tag{2 * at + 1}: "
            f"case {{ when {in_mutation(condition)} then {start + 1} else 0 }} }} where true"
            for at, (condition, _) in enumerate(batch)
        ]
        held.graph.mutate(f"query w() {{ {' '.join(statements)} }}")
        for at, (condition, expected) in enumerate(batch):
            for tag in (2 * at, 2 * at + 1):
                text = (
                    f"query q() {{ match {{ $n: Thing {{ tag{tag}: {start + 1} }} }} "
                    "return { $n.k as k } }"
                )
                assert answer(held.graph, text, {}, WARM) == expected, (tag, condition)
