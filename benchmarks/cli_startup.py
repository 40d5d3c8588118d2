"""How long ``omnigraph --help`` and ``omnigraph version`` take, relative to importing typer."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from statistics import median
from typing import Any, Final

from benchmarks.record import alternating, spread

REPETITIONS: Final = 20
DATA: Final = "a new process each time, alternating, compiled modules on disk"
WARM_UP: Final = "3 runs of each, which also compile the modules"
BARS: Final = {"help_to_typer_ratio": 3.0}
_RUN: Final = "import sys; from omnigraph.cli.main import run; sys.argv[0] = 'omnigraph'; run()"
_COMMANDS: Final = {
    "python_alone": ["-c", "pass"],
    "typer_import": ["-c", "import typer"],
    "help": ["-c", _RUN, "--help"],
    "version": ["-c", _RUN, "version"],
}


def run() -> dict[str, Any]:
    calls = [partial(_run, arguments) for arguments in _COMMANDS.values()]
    times = dict(zip(_COMMANDS, alternating(calls, REPETITIONS), strict=True))
    ratio = median(times["help"]) / median(times["typer_import"])
    return {
        **{f"{name}_ms": spread(found) for name, found in times.items()},
        "help_to_typer_ratio": round(ratio, 3),
    }


def _run(arguments: list[str]) -> None:
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
