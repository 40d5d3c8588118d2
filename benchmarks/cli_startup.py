"""How long ``omnigraph --help`` and ``omnigraph version`` take, as a person waits for them."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter
from typing import Any, Final

from benchmarks.record import spread

REPETITIONS: Final = 20
DATA: Final = "a new process each time, compiled modules on disk"
WARM_UP: Final = "3 runs of each, which also compile the modules"
BARS: Final = {"help_ms": 120.0}
_RUN: Final = "import sys; from omnigraph.cli.main import run; sys.argv[0] = 'omnigraph'; run()"


def run() -> dict[str, Any]:
    return {
        "python_alone_ms": _time_ms([sys.executable, "-c", "pass"]),
        "help_ms": _time_ms([sys.executable, "-c", _RUN, "--help"]),
        "version_ms": _time_ms([sys.executable, "-c", _RUN, "version"]),
    }


def _time_ms(command: list[str]) -> dict[str, float]:
    found = []
    for number in range(-3, REPETITIONS):
        started = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
        if number >= 0:
            found.append((perf_counter() - started) * 1000)
    return spread(found)
