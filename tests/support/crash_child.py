"""The child process that is killed: runs one step and reports it as one line of JSON.

    python -m tests.support.crash_child write URI KIND NUMBER
    python -m tests.support.crash_child recover URI

Which failpoints are armed is in the environment (see ``omnigraph.storage.failpoints``). The line
says how often each armed failpoint was reached, and the code of the error if the step ended in one
of ours; after an interrupt also what the exception told of the write. A killed child prints
nothing.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.storage import failpoints
from tests.support.crash_kinds import Target, writer_kinds

INTERRUPTED = "interrupted"


def main(arguments: list[str]) -> None:
    # Started in the background of a shell, a process ignores SIGINT unless it says otherwise.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answer: dict[str, Any] = {"error": None}
    try:
        _step(*arguments)
    except OmnigraphError as error:
        answer["error"] = error.code
    except KeyboardInterrupt as stop:
        answer["error"] = INTERRUPTED
        answer["told"] = "".join(getattr(stop, "__notes__", ()))
    reached = {name: failpoints.reached(name) for name in failpoints.NAMES}
    answer["reached"] = {name: times for name, times in reached.items() if times}
    print(json.dumps(answer), flush=True)


def _step(step: str, uri: str, *rest: str) -> None:
    if step == "write":
        kind, number = rest
        writer_kinds()[kind].write(Target(uri), int(number))
    elif step == "recover":
        omnigraph.open(uri)
    else:
        raise SystemExit(f"unknown step {step!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
