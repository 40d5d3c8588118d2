"""Which writes are prepared again after a conflict: internals of the commit loop, as a table."""

from __future__ import annotations

import pytest

from omnigraph.errors import (
    BranchProtected,
    Conflict,
    OwnershipLost,
    ReadSetConflict,
    VersionConflict,
)
from omnigraph.prepare.committer import is_caused_by_head, may_repeat

LOST = VersionConflict("node:Person", 1, 2)
READ = ReadSetConflict("schema", "a", "b")
TAKEN = OwnershipLost("taken over")
FINAL = BranchProtected("protected")


@pytest.mark.parametrize(
    ("conflict", "repeatable", "head_has_moved", "expected"),
    [
        (LOST, True, True, True),
        (LOST, True, False, True),
        (LOST, False, True, False),
        (LOST, False, False, True),
        (READ, True, True, True),
        (READ, False, True, False),
        (TAKEN, False, False, False),
        (TAKEN, False, True, False),
        (FINAL, True, True, False),
        (FINAL, False, False, False),
    ],
)
def test_a_write_is_repeated_if_its_preparation_may_be_or_only_maintenance_came_between(
    conflict: Conflict, repeatable: bool, head_has_moved: bool, expected: bool
) -> None:
    assert may_repeat(conflict, repeatable=repeatable, head_has_moved=head_has_moved) is expected


@pytest.mark.parametrize(
    ("conflict", "head", "expected"),
    [
        (LOST, "new", True),
        (LOST, "old", False),
        (TAKEN, "new", False),
        (FINAL, "new", False),
    ],
)
def test_a_conflict_is_a_failed_precondition_if_the_head_is_not_the_expected_one(
    conflict: Conflict, head: str, expected: bool
) -> None:
    assert is_caused_by_head(conflict, "old", head) is expected
