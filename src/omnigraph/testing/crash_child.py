"""The process that is killed: carries out one step and says so in one line of JSON.

    python -m omnigraph.testing.crash_child write URI KIND NUMBER
    python -m omnigraph.testing.crash_child recover URI

Which failpoints are armed is in the environment (see ``omnigraph.storage.failpoints``). The line
says how often each armed failpoint was reached; a killed child prints nothing.
"""

from __future__ import annotations

import json
import sys

import omnigraph
from omnigraph.storage import failpoints
from omnigraph.testing.crash_kinds import Target, writer_kinds


def main(arguments: list[str]) -> None:
    step, uri, *rest = arguments
    if step == "write":
        kind, number = rest
        writer_kinds()[kind].write(Target(uri), int(number))
    elif step == "recover":
        omnigraph.open(uri)
    else:
        raise SystemExit(f"unknown step {step!r}")
    reached = {name: failpoints.reached(name) for name in failpoints.NAMES}
    print(json.dumps({"reached": {name: n for name, n in reached.items() if n}}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
