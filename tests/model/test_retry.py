"""Retry with backoff: which pauses a policy makes, and when it gives up."""

from __future__ import annotations

import pytest

from omnigraph.model.retry import Retry, RetryPolicy, poll_policy, wait_until


class FakeClock:
    """A clock that moves only when a policy sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def now_us(self) -> int:
        return int(self.now_s * 1e6)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def _failures_until_given_up(retry: Retry) -> int:
    while retry.again():
        pass
    return retry.failures


def test_pauses_double_up_to_the_cap(clock: FakeClock) -> None:
    policy = RetryPolicy(1.0, 5.0, attempts_max=6, jitter=0.0, sleep=clock.sleep)
    assert _failures_until_given_up(policy.start(clock)) == 6
    assert clock.pauses == [1, 2, 4, 5, 5]


@pytest.mark.parametrize(
    ("jitter", "drawn", "pause_s"), [(1.0, 0.0, 8.0), (1.0, 0.75, 2.0), (0.5, 1.0, 4.0)]
)
def test_jitter_shortens_a_pause_by_at_most_its_share(
    jitter: float, drawn: float, pause_s: float
) -> None:
    assert RetryPolicy(8.0, jitter=jitter, random=lambda: drawn).pause_s(1) == pause_s


def test_no_attempt_begins_after_the_deadline(clock: FakeClock) -> None:
    policy = RetryPolicy(1.0, 1.0, deadline_s=3.5, jitter=0.0, sleep=clock.sleep)
    assert _failures_until_given_up(policy.start(clock)) == 4
    assert clock.now_s == 3.0


def test_the_minimum_of_attempts_is_made_despite_the_deadline(clock: FakeClock) -> None:
    policy = RetryPolicy(1.0, attempts_min=3, deadline_s=0.0, jitter=0.0, sleep=clock.sleep)
    assert _failures_until_given_up(policy.start(clock)) == 3


def test_an_unlimited_policy_keeps_its_cap_after_many_failures() -> None:
    assert RetryPolicy(0.001, 0.25, jitter=0.0).pause_s(100_000) == 0.25


def test_a_wait_ends_when_its_condition_holds() -> None:
    answers = iter([False, False, True])
    assert wait_until(lambda: next(answers), poll_policy(0.0, 60.0))


def test_a_wait_ends_at_its_deadline() -> None:
    assert not wait_until(lambda: False, poll_policy(0.001, 0.01))
