"""Every writer kind, killed at every failpoint it reaches, and again inside recovery."""

from pathlib import Path

import pytest

from omnigraph.storage.failpoints import NAMES
from omnigraph.testing.crash_matrix import all_pairs, run_matrix

MATRIX_S_MAX = 3600
SECOND_KILLS_MAX = 1
"""Per pair, and at every failpoint of recovery at least once: there are hundreds of pairs, and
which failpoint it is goes around with their number."""
TELL_EVERY = 10


@pytest.mark.crash
def test_every_pair_converges_without_a_human(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = all_pairs(tmp_path)

    def tell(done: int) -> None:
        if done % TELL_EVERY == 0:
            with capsys.disabled():
                print(f"\n{done} of {len(pairs)} pairs", end="", flush=True)

    matrix = run_matrix(pairs, tmp_path, second_kills_max=SECOND_KILLS_MAX, progress=tell)
    with capsys.disabled():
        print(f"\n{matrix.describe()}")
    assert matrix.violations == []
    assert set(NAMES) - matrix.failpoints == set()
    assert matrix.seconds < MATRIX_S_MAX
