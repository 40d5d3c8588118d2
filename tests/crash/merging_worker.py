"""One process of ``test_merging.py``: writes to its branch, merges into main, and reports.

Every line of its ledger was written after the call it speaks of had returned.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, RecoveryRequired


def work(uri: str, branch: str, ledger: Path, seed: int) -> None:
    rng = random.Random(seed)
    graph = omnigraph.open(uri)
    number = 0
    while True:
        number += 1
        name = f"{branch}-{seed}-{number}"
        with graph.write(branch) as w:
            w.insert("Person", {"name": name, "age": number})
            w.insert_edge("Knows", name, "ana")
        tell(ledger, f"wrote {name}")
        if rng.random() < 0.5 and tried(graph, branch, "main"):
            tell(ledger, f"merged {name}")
        if rng.random() < 0.2:
            tried(graph, "main", branch)


def tried(graph: Graph, source: str, target: str) -> bool:
    """Whether a merge succeeded; others may be faster for longer than it is willing to try."""
    try:
        graph.merge(source, target)
    except (Conflict, RecoveryRequired) as refused:
        if not refused.retryable:
            raise
        return False
    return True


def tell(ledger: Path, line: str) -> None:
    with ledger.open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
