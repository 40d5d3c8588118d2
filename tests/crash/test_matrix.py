"""Every writer kind, killed at every failpoint it reaches, and again inside recovery; and every
one interrupted there, as by Ctrl-C."""

from pathlib import Path

import pytest
from tests.support.crash import Pair
from tests.support.crash_kinds import of_conversions
from tests.support.crash_matrix import (
    Matrix,
    all_pairs,
    graph_failpoints,
    interrupted,
    run_matrix,
)

MATRIX_S_MAX = 3600
SECOND_KILLS_MAX = 1
"""Per pair, and at every failpoint of recovery at least once: there are hundreds of pairs, and
which failpoint it is goes around with their number."""
TELL_EVERY = 10


@pytest.mark.crash
def test_every_pair_converges_without_a_human(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = _run(all_pairs(tmp_path), tmp_path, capsys)
    assert matrix.violations == []
    assert graph_failpoints() - matrix.failpoints == of_conversions()
    assert matrix.seconds < MATRIX_S_MAX


@pytest.mark.crash
def test_W_2_every_interrupted_pair_converges_and_tells_the_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = _run(interrupted(all_pairs(tmp_path)), tmp_path, capsys)
    assert matrix.violations == []
    assert matrix.seconds < MATRIX_S_MAX


def _run(pairs: list[Pair], place: Path, capsys: pytest.CaptureFixture[str]) -> Matrix:
    def tell(done: int) -> None:
        if done % TELL_EVERY == 0:
            with capsys.disabled():
                print(f"\n{done} of {len(pairs)} pairs", end="", flush=True)

    matrix = run_matrix(pairs, place, second_kills_max=SECOND_KILLS_MAX, progress=tell)
    with capsys.disabled():
        print(f"\n{matrix.describe()}")
    return matrix
