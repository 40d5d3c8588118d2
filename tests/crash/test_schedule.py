"""Writers and readers killed at random times; the history they leave is one serial history."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.schedule import Plan, Run, Schedule

from omnigraph.settings import LimitSettings

LONG_SEED = 20261
S3_SEED = 20262


def run(plan: Plan, uri: str, room: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    room.mkdir()
    result = Schedule(plan, uri, room).run()
    with capsys.disabled():
        print(f"\n{result.describe()}")
    return result


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_a_short_schedule_of_kills_and_stops_loses_nothing(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(seed, kills=8, stops=2, operations=250, alive_s_max=3)
    result = run(plan, str(tmp_path / "g"), tmp_path / "ledgers", capsys)
    assert result.violations == []
    assert result.kills == 8
    assert len(result.account.operations) >= 250


@pytest.mark.crash
def test_three_hundred_kills_and_twenty_thousand_operations_lose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(LONG_SEED, kills=300, stops=30, operations=20_000)
    result = run(plan, str(tmp_path / "g"), tmp_path / "ledgers", capsys)
    assert result.violations == []
    assert result.kills >= 300
    assert len(result.account.operations) >= 20_000


@pytest.mark.crash
@pytest.mark.s3
def test_sixty_kills_on_the_s3_server_lose_nothing(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(S3_SEED, kills=60, operations=600, lease_s=LimitSettings().lease_s, alive_s_max=6)
    result = run(plan, f"{bucket}/g", tmp_path / "ledgers", capsys)
    assert result.violations == []
    assert result.kills >= 60
