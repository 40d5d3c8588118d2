"""Old against new in one run: the CPU time of reading and writing in two checkouts.

    python -m benchmarks.compare OLD_CHECKOUT [PART_OF_A_NAME ...]

Each checkout has a process of its own, with its own ``.venv`` and the same data; they take turns,
call by call, so that both meet the same machine. CPU time is compared, not elapsed time: it hardly
depends on what else the machine does. Prints minima and medians and writes a record.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import compare_cases
from benchmarks.record import (
    ROOT,
    Record,
    describe_commit,
    describe_machine,
    describe_versions,
    progress,
    spread,
    utc_now,
)

ROUNDS: Final = 9
WARM_UP: Final = 2
SLOWER_MAX: Final = 1.05
ROUND_MS: Final = 60
"""A round repeats a quick call until it takes about this long."""
REPEAT_MAX: Final = 500


class Worker:
    """The process that measures one checkout."""

    def __init__(self, checkout: Path) -> None:
        python = checkout / ".venv" / "bin" / "python"
        self._process = subprocess.Popen(
            [str(python), "-P", compare_cases.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        self.names: list[str] = self._answer()

    def round(self, name: str, repeat: int) -> float:
        """The CPU time of one call, in ms."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, repeat]) + "\n")
        self._process.stdin.flush()
        took: float = self._answer()
        return took

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended; its error is above")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main(arguments: list[str]) -> int:
    if not arguments:
        progress(__doc__ or "")
        return 2
    old_checkout, parts = Path(arguments[0]).resolve(), arguments[1:]
    machine, started_at, started = describe_machine(), utc_now(), time.perf_counter()
    old, new = Worker(old_checkout), Worker(ROOT)
    numbers: dict[str, Any] = {"old_commit": describe_commit(old_checkout)}
    slower = []
    print(f"{'CPU ms of one call':36} {'old min':>9} {'new min':>9} {'ratio':>7} {'medians':>8}")
    for name in new.names:
        if parts and not any(part in name for part in parts):
            continue
        found = _measure(name, old, new)
        numbers[name] = found
        worse = found["ratio_of_minima"] > SLOWER_MAX and found["ratio_of_medians"] > SLOWER_MAX
        if worse:
            slower.append(name)
        print(
            f"{name:36} {found['old_ms']['min']:9.2f} {found['new_ms']['min']:9.2f} "
            f"{found['ratio_of_minima']:7.3f} {found['ratio_of_medians']:8.3f}"
            + ("  SLOWER" if worse else ""),
            flush=True,
        )
    old.close()
    new.close()
    record = Record(
        benchmark="compare",
        started_at=started_at,
        seconds=round(time.perf_counter() - started, 1),
        commit=describe_commit(),
        machine=machine,
        versions=describe_versions(),
        data="old against new: CPU time of one call, in processes that take turns",
        warm_up=f"{WARM_UP} rounds of each",
        repetitions=ROUNDS,
        numbers=numbers | {"slower": len(slower)},
        bars={"slower": 0},
        passed=not slower,
    )
    print(f"record: {record.save().name}")
    return 0 if record.passed else 1


def _measure(name: str, old: Worker, new: Worker) -> dict[str, Any]:
    workers = {"old": old, "new": new}
    repeat = 1
    for _ in range(WARM_UP):
        took = max(worker.round(name, 1) for worker in workers.values())
        repeat = max(1, min(REPEAT_MAX, int(ROUND_MS / max(took, 0.1))))
    times: dict[str, list[float]] = {side: [] for side in workers}
    for number in range(ROUNDS):
        for side in sorted(workers, reverse=number % 2 == 0):
            times[side].append(workers[side].round(name, repeat))
    return {
        "old_ms": spread(times["old"]),
        "new_ms": spread(times["new"]),
        "ratio_of_minima": round(min(times["new"]) / min(times["old"]), 3),
        "ratio_of_medians": round(median(times["new"]) / median(times["old"]), 3),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
