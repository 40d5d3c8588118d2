"""Run benchmarks, show them against their bars, and write their records."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from benchmarks.record import (
    Record,
    Verdict,
    describe_commit,
    describe_machine,
    describe_versions,
    judge,
    progress,
    utc_now,
)

# In the order of a full run: quick ones first.
NAMES = (
    "cli_startup",
    "language",
    "branch_create",
    "publish_contention",
    "writing",
    "loading",
    "history",
    "commit_flatness",
    "merging",
    "maintenance",
    "soak",
    "first_query",
    "concurrency",
    "serving",
    "social",
    "lsqb",
    "peers",
    "spark_load",
)


def main(arguments: list[str]) -> int:
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        progress(f"no benchmark is called {unknown[0]}; there are: {', '.join(NAMES)}")
        return 2
    passed = [run(name) for name in arguments or NAMES]
    return 0 if all(passed) else 1


def run(name: str) -> bool:
    """Measure one benchmark, print it and write its record; whether it met every bar."""
    module = import_module(f"benchmarks.{name}")
    missing = module.unavailable() if hasattr(module, "unavailable") else None
    if missing is not None:
        progress(f"{name}: left out, because {missing}")
        return True
    progress(f"{name} ...")
    machine, started_at, started = describe_machine(), utc_now(), time.perf_counter()
    numbers: dict[str, Any] = module.run()
    bars: dict[str, float] = dict(module.BARS)
    verdicts = judge(numbers, bars)
    record = Record(
        benchmark=name,
        started_at=started_at,
        seconds=round(time.perf_counter() - started, 1),
        commit=describe_commit(),
        machine=machine,
        versions=describe_versions(),
        data=getattr(module, "DATA", (module.__doc__ or "").splitlines()[0]),
        warm_up=getattr(module, "WARM_UP", "one call of each"),
        repetitions=getattr(module, "REPETITIONS", None),
        numbers=numbers,
        bars=bars,
        passed=all(verdict.passed for verdict in verdicts),
    )
    path = record.save()
    show(name, numbers, verdicts)
    print(f"  record: {path.parent.name}/{path.name}")
    return record.passed


def show(name: str, numbers: dict[str, Any], verdicts: list[Verdict]) -> None:
    judged = {verdict.name: verdict for verdict in verdicts}
    print(f"{name}: {'pass' if all(v.passed for v in verdicts) else 'FAIL'}")
    for key, value in numbers.items():
        if isinstance(value, dict) and "median" in value:
            text = f"{value['median']:g}  ({value['min']:g} to {value['max']:g})"
        else:
            text = str(value)
        verdict = judged.get(key)
        bar = f"   at most {verdict.bar:g}: {'ok' if verdict.passed else 'FAIL'}" if verdict else ""
        print(f"  {key:32} {text}{bar}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
