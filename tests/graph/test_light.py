"""The handle and its types load no engine: neither Lance nor pyarrow nor numpy (ADR 25, ADR 27)."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("lance", "pyarrow", "numpy", "obstore", "pyspark", "omnigraph.engine", "omnigraph.local")


def test_importing_the_handle_loads_no_engine() -> None:
    text = (
        "import sys, omnigraph\n"
        "from omnigraph import Branches, BranchView, Graph, History, Maintenance, SnapshotView\n"
        "from omnigraph import SparkJobs, Tags, init, open\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
