"""A fixed sample of the crash matrix, and proof that no failpoint is left out of the whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.crash import Pair
from tests.support.crash_kinds import of_conversions, writer_kinds
from tests.support.crash_matrix import (
    all_pairs,
    graph_failpoints,
    interrupted,
    run_matrix,
    sample,
)

import omnigraph
from omnigraph.storage.failpoints import NAMES

SAMPLE = 60
INTERRUPTED = 16
SOURCE = Path(omnigraph.__file__).parent


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    return all_pairs(tmp_path_factory.mktemp("discover"))


@pytest.mark.slow
def test_a_sample_of_pairs_converges_and_covers_every_failpoint(
    pairs: list[Pair], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = run_matrix(sample(pairs, SAMPLE), tmp_path, second_kills_max=1)
    with capsys.disabled():
        print(f"\n{matrix.describe()}")
    assert matrix.violations == []
    assert len(matrix.pairs) == SAMPLE
    assert graph_failpoints() - matrix.failpoints == of_conversions()


@pytest.mark.slow
def test_W_2_a_sample_of_interrupted_pairs_converges_and_tells_the_truth(
    pairs: list[Pair], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every pair of a write whose repetition would show, and a few of all others."""
    telling = [pair for pair in pairs if pair.kind == "insert without a key"]
    others = [pair for pair in pairs if pair not in telling]
    chosen = interrupted([*telling, *sample(others, INTERRUPTED, seed=19)])
    matrix = run_matrix(chosen, tmp_path, second_kills_max=1)
    with capsys.disabled():
        print(f"\ninterrupted: {matrix.describe()}")
    assert matrix.violations == []


def test_every_writer_kind_reaches_failpoints(pairs: list[Pair]) -> None:
    assert {pair.kind for pair in pairs} == set(writer_kinds())


def test_the_sample_is_always_the_same(pairs: list[Pair]) -> None:
    assert sample(pairs, SAMPLE) == sample(list(reversed(pairs)), SAMPLE)


def test_every_failpoint_is_used_in_the_source_and_every_use_is_listed() -> None:
    used = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r'\bhit\("([^"]+)"\)', path.read_text())
    }
    assert used == set(NAMES)
