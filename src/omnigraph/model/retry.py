"""Retry with exponential backoff and jitter, and bounded waits for a condition.

Every loop of the package that repeats an attempt after a pause uses this module. A policy is a
value; ``policy.start()`` gives the ``Retry`` of one operation::

    retry = POLICY.start()
    while True:
        try:
            return attempt()
        except Transient:
            if not retry.again():
                raise
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.model.clock import SYSTEM_CLOCK, Clock

_DOUBLINGS_MAX = 60  # beyond any cap or deadline, and below the overflow of a float


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and for how long an attempt is retried, and the pauses in between.

    The n-th pause is drawn from ``[(1 - jitter) * p, p]`` with ``p = base_s * 2 ** (n - 1)``, at
    most ``cap_s``. ``jitter=1`` is full jitter, ``jitter=0`` gives fixed pauses.
    """

    base_s: float
    cap_s: float = math.inf
    attempts_min: int = 1
    """Made even when the deadline has passed."""
    attempts_max: int | None = None
    deadline_s: float = math.inf
    """No attempt after the first ``attempts_min`` begins later than this after the start."""
    jitter: float = 1.0
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)
    random: Callable[[], float] = field(default=random.random, compare=False, repr=False)

    def pause_s(self, failures: int) -> float:
        """The pause after this many failed attempts."""
        ceiling = min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))
        return ceiling * (1 - self.jitter * self.random())

    def start(self, clock: Clock = SYSTEM_CLOCK) -> Retry:
        """Begin one operation: its deadline counts from now."""
        return Retry(self, clock)


class Retry:
    """The retries of one operation: counts failed attempts and pauses between attempts."""

    def __init__(self, policy: RetryPolicy, clock: Clock) -> None:
        self.policy = policy
        self.failures = 0
        self._clock = clock
        self._started = clock.monotonic()
        self._pause_s = 0.0

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.policy.deadline_s - (self._clock.monotonic() - self._started)

    def again(self) -> bool:
        """Count a failed attempt and pause; False, without a pause, when no other is allowed."""
        if not self.failed():
            return False
        self.back_off()
        return True

    def failed(self) -> bool:
        """Count a failed attempt; whether another one is allowed."""
        policy = self.policy
        self.failures += 1
        self._pause_s = policy.pause_s(self.failures)
        if policy.attempts_max is not None and self.failures >= policy.attempts_max:
            return False
        return self.failures < policy.attempts_min or self.remaining_s > self._pause_s

    def back_off(self) -> None:
        """Pause after the attempt that failed last."""
        self.policy.sleep(self._pause_s)


def poll_policy(poll_s: float, deadline_s: float, *, jitter: float = 1.0) -> RetryPolicy:
    """Pauses of at most ``poll_s`` until the deadline, without growth."""
    return RetryPolicy(base_s=poll_s, cap_s=poll_s, deadline_s=deadline_s, jitter=jitter)


def wait_until(condition: Callable[[], bool], policy: RetryPolicy) -> bool:
    """Poll until the condition holds; False when the deadline passes first."""
    retry = policy.start()
    while not condition():
        if not retry.again():
            return False
    return True
