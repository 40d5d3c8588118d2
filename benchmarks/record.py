"""Run records: what was measured, on what, with what, and whether it met its bars."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).parent / "records"
LIBRARIES = (
    "pylance", "pyarrow", "numpy", "obstore", "typer", "kuzu", "ladybug", "duckdb", "pyspark",
)  # fmt: skip

Numbers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar: at most ``bar`` was allowed, ``found`` was measured."""

    name: str
    found: float
    bar: float

    @property
    def passed(self) -> bool:
        return self.found <= self.bar


@dataclass(frozen=True, slots=True)
class Record:
    """Everything needed to read a number years later."""

    benchmark: str
    started_at: str
    seconds: float
    commit: str
    machine: dict[str, Any]
    versions: dict[str, str]
    data: str
    warm_up: str
    repetitions: int | None
    numbers: dict[str, Any]
    bars: dict[str, float]
    passed: bool

    def save(self) -> Path:
        RECORDS.mkdir(exist_ok=True)
        stamp = self.started_at.replace(":", "").replace("-", "")
        path = RECORDS / f"{self.benchmark}-{stamp}-{self.commit[:7]}.json"
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")
        return path


def spread(found: Sequence[float], digits: int = 3) -> dict[str, float]:
    """The median with the smallest and the largest beside it."""
    return {
        "median": round(median(found), digits),
        "min": round(min(found), digits),
        "max": round(max(found), digits),
    }


def alternating(
    calls: Sequence[Callable[[], object]], repetitions: int, warm_up: int = 3
) -> list[list[float]]:
    """The times of each call in ms; the calls alternate, so that all run under the same load."""
    times_ms: list[list[float]] = [[] for _ in calls]
    for number in range(-warm_up, repetitions):
        for call, found in zip(calls, times_ms, strict=True):
            started = perf_counter()
            call()
            if number >= 0:
                found.append((perf_counter() - started) * 1000)
    return times_ms


def percentile(found: Sequence[float], percent: float) -> float:
    """The value that so many percent of the measurements do not exceed."""
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def flatness(times_ms: Sequence[float], window: int) -> dict[str, Any]:
    """Whether the last of many equal steps cost what the first did."""
    first, last = times_ms[:window], times_ms[-window:]
    return {
        "first_100_ms": spread(first),
        "last_100_ms": spread(last),
        "last_to_first_ratio": round(median(last) / median(first), 3),
        "p50_ms": round(median(times_ms), 3),
        "p99_ms": round(percentile(times_ms, 99), 3),
    }


def judge(numbers: Numbers, bars: Mapping[str, float]) -> list[Verdict]:
    """One verdict per bar; a spread is judged by its median."""
    verdicts = []
    for name, bar in bars.items():
        value = numbers[name]
        found = value["median"] if isinstance(value, Mapping) else value
        verdicts.append(Verdict(name, float(found), float(bar)))
    return verdicts


def describe_machine() -> dict[str, Any]:
    """The machine without its name: what a number depends on."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages * size / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": [round(value, 2) for value in os.getloadavg()],
    }


def describe_versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("omnigraph", *LIBRARIES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def describe_commit(checkout: Path = ROOT) -> str:
    """The commit that was measured; ``+`` marks changes that are not in it."""
    try:
        commit = _git(checkout, "rev-parse", "HEAD")
        return commit + ("+" if _git(checkout, "status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def progress(text: str) -> None:
    """Say something on standard error: standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
