"""Optimizing a large table of many small files, and backing up a small change of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from tests.support.internals import repository_of, transaction_of

import omnigraph
from benchmarks.record import progress
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.staging.rows import stage_fragments
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

SCHEMA: Final = "node Item { name: String @key  n: I64?  note: String? }"
ROWS: Final = int(os.environ.get("OMNIGRAPH_MAINTENANCE_ROWS", "10000000"))
FRAGMENTS: Final = 2_000
CHANGED: Final = ROWS // 100
DATA: Final = (
    f"one type of {ROWS} rows in {FRAGMENTS} files, local disk; then {CHANGED} rows changed"
)
WARM_UP: Final = "none: every step runs in a process of its own"
REPETITIONS: Final = 1
BARS: Final = {"optimize_peak_rss_gb": 2.0, "incremental_backup_share": 0.05}
# Not ``ru_maxrss``, which begins with what the process held that started this one.
_CHILD: Final = """
import json, sys, time
from pathlib import Path
from benchmarks import maintenance
started = time.perf_counter()
found = getattr(maintenance, sys.argv[1])(*sys.argv[2:])
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / (1 << 20)
print(json.dumps({"seconds": time.perf_counter() - started, "peak_gb": peak, "found": found}))
"""


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        graph, backup = str(Path(directory) / "g"), str(Path(directory) / "backup")
        _step("make", graph)
        optimized = _step("optimize", graph)
        first = _step("back_up", graph, backup)
        _step("change", graph)
        second = _step("back_up", graph, backup)
    return {
        "files_before": optimized["found"][0],
        "files_after": optimized["found"][1],
        "optimize_s": round(optimized["seconds"], 1),
        "optimize_peak_rss_gb": round(optimized["peak_gb"], 3),
        "backup_s": round(first["seconds"], 1),
        "backup_bytes": first["found"],
        "incremental_backup_s": round(second["seconds"], 1),
        "incremental_backup_bytes": second["found"],
        "incremental_backup_share": round(second["found"] / first["found"], 4),
    }


def _step(name: str, *arguments: str) -> dict[str, Any]:
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, name, *arguments], capture_output=True, text=True, check=True
    )
    progress(f"  {name}: {perf_counter() - started:.0f} s")
    return dict(json.loads(done.stdout))


def make(uri: str) -> None:
    """One commit of many small files: what two thousand loads without upkeep would leave."""
    import numpy as np
    import pyarrow as pa
    from lance.fragment import write_fragments

    graph = omnigraph.init(uri, SCHEMA)
    pin = graph.snapshot().pin("node:Item")
    table = repository_of(graph).tables.open(pin.ref)
    each = ROWS // FRAGMENTS
    new: list[Any] = []
    for start in range(0, ROWS, each * 100):
        numbers = np.arange(start, min(start + each * 100, ROWS))
        names = pa.array([f"item {number:09}" for number in numbers])
        columns = {"id": names, "name": names, "n": pa.array(numbers), "note": names}
        rows = pa.table({name: columns[name] for name in table.schema.names}).cast(table.schema)
        new += write_fragments(rows, table.dataset, mode="append", max_rows_per_file=each)
    staged = stage_fragments(table, "insert", {}, new=new, rows_inserted=ROWS)
    prepared = (PreparedTable(pin, staged),)
    write = PreparedWrite(new_ulid(), graph.snapshot(), WriteInfo("load"), prepared)
    transaction_of(graph).commit(write)


def optimize(uri: str) -> tuple[int, int]:
    (item, _) = omnigraph.open(uri).maintenance.optimize()
    return item.fragments_removed, item.fragments_added


def change(uri: str) -> None:
    rows = [
        {"name": f"item {number:09}", "n": -number, "note": "changed"}
        for number in range(0, ROWS, ROWS // CHANGED)
    ]
    omnigraph.open(uri).load({"Item": rows}, mode="merge")


def back_up(uri: str, target: str) -> int:
    return omnigraph.open(uri, read_only=True).maintenance.backup(target).bytes
