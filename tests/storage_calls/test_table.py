"""The storage calls of every operation are those of the committed table, and they are flat.

A commit costs the same whatever came before it (P-5), a branch the same whatever the graph holds
(G-1), and a warm handle on an unchanged graph asks one small question (D-7).
"""

from __future__ import annotations

import pytest
from tests.storage_calls import table
from tests.storage_calls.histories import COMMITS, TYPES
from tests.storage_calls.measure import Cell, Counts, measure
from tests.storage_calls.operations import CLASSES, OPERATIONS, Operation
from tests.support.s3server import S3Server

TOLERANCE = 1
# A fragment past a few dozen rows is no longer read together with its footer: one more GET for
# each time it is scanned, however large it is. Everything else does not grow at all.
GROWTH_MAX = {"GET": 2}

STORED = table.load()


# A thousand commits take half a minute to make, so `make test` makes them once, where there are
# most types. The other two long histories are in the table like this one, and are measured again
# by `make bench`.
MEASURED = [
    pytest.param(1, (10,)),
    pytest.param(20, (10,)),
    pytest.param(100, COMMITS),
    pytest.param(1, COMMITS, marks=pytest.mark.bench),
    pytest.param(20, COMMITS, marks=pytest.mark.bench),
]


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.parametrize(("types", "lengths"), MEASURED)
def test_the_calls_are_those_of_the_table(
    s3: S3Server, types: int, lengths: tuple[int, ...]
) -> None:
    measured = measure(s3, types, lengths)

    expected = {
        cell: counts for cell, counts in STORED.items() if cell[1] == types and cell[2] in lengths
    }
    assert measured.keys() == expected.keys()
    differences = {
        (*cell, name): (expected[cell][name], counts[name])
        for cell, counts in measured.items()
        for name in CLASSES
        if abs(counts[name] - expected[cell][name]) > TOLERANCE
    }
    assert differences == {}, (
        "(expected, counted): if this is meant, python -m tests.storage_calls.regenerate"
    )


def test_the_table_covers_every_operation() -> None:
    cells = {
        (operation.name, types, commits)
        for operation in OPERATIONS
        for types in TYPES
        for commits in COMMITS
        if types >= operation.types_min
    }
    assert STORED.keys() == cells


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_P_5_the_calls_do_not_grow_with_history(operation: Operation) -> None:
    first, last = min(COMMITS), max(COMMITS)
    for cell, counts in _rows_of(operation):
        if cell[2] == last:
            before = STORED[cell[0], cell[1], first]
            for name in operation.flat:
                assert counts[name] <= before[name] + GROWTH_MAX.get(name, 0), (cell, name)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_P_5_the_calls_do_not_grow_with_untouched_types(operation: Operation) -> None:
    fewest = operation.types_min
    first = min(types for types in TYPES if types >= fewest)
    for cell, counts in _rows_of(operation):
        before = STORED[cell[0], first, cell[2]]
        for name in CLASSES:
            assert counts[name] <= before[name] + TOLERANCE, (cell, name)


def test_D_7_a_warm_snapshot_is_one_small_question() -> None:
    for cell, counts in STORED.items():
        if cell[0] == "snapshot, warm":
            assert counts == {"GET": 0, "HEAD": 1, "PUT": 0, "LIST": 0, "DELETE": 0}


def test_nothing_that_only_looks_writes() -> None:
    for (operation, _, _), counts in STORED.items():
        if operation.startswith(("open", "snapshot")):
            assert counts["PUT"] == counts["DELETE"] == 0


def _rows_of(operation: Operation) -> list[tuple[Cell, Counts]]:
    name = operation.name
    return [(cell, counts) for cell, counts in STORED.items() if cell[0] == name]
