"""Serves the graph of the demo on this machine. Run it with ``make serve``.

The graph is loaded in process and is in a temporary directory; it is gone when the server stops.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
OMNIGRAPH = (sys.executable, "-m", "omnigraph.cli.main")


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="omnigraph-demo-") as folder:
        data, graph = str(Path(folder) / "kb.jsonl"), str(Path(folder) / "knowledge")
        subprocess.run([sys.executable, str(HERE / "make_knowledge.py"), data], check=True)
        schema = str(HERE / "knowledge.pg")
        subprocess.run([*OMNIGRAPH, "init", "--schema", schema, graph], check=True)
        load = ("load", graph, "--data", data, "--mode", "append", "--engine", "local")
        subprocess.run([*OMNIGRAPH, *load], check=True)
        try:
            return subprocess.run([*OMNIGRAPH, "serve", graph, *arguments], check=False).returncode
        except KeyboardInterrupt:  # the server has got the signal, too, and has stopped
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
