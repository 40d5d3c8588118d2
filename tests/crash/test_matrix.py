"""Every writer kind, killed at every failpoint it reaches, and again inside recovery."""

from pathlib import Path

import pytest

from omnigraph.storage.failpoints import NAMES
from omnigraph.testing.crash_matrix import all_pairs, run_matrix

MATRIX_S_MAX = 3600


@pytest.mark.crash
def test_every_pair_converges_without_a_human(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = run_matrix(all_pairs(tmp_path), tmp_path)
    with capsys.disabled():
        print(f"\n{matrix.describe()}")
    assert matrix.violations == []
    assert set(NAMES) - matrix.failpoints == set()
    assert matrix.seconds < MATRIX_S_MAX
