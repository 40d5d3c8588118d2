"""Many readers at once: threads of one process, two processes, and memory over many queries.

``sub`` are queries far below a millisecond (point, one hop), ``wide`` take 2 ms and more
(a filter over a million nodes, an anti-join). Numbers with bars are shares of the one-thread rate,
turned around so that less is better: one thread's rate divided by theirs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from benchmarks.engines import Engine
from benchmarks.folders import bench_folder
from benchmarks.peers import SIZES
from benchmarks.people import GQ, make_files, parameters
from benchmarks.record import percentile

DATA: Final = (
    "seeded people: 1M nodes and 10M edges; memory: 2,000 nodes, a write every 100 queries"
)
WARM_UP: Final = "every query ten times in every process"
SECONDS: Final = 4.0
THREADS: Final = 8
PROCESSES: Final = 2
SUB: Final = ("point", "hop1_out")
WIDE: Final = ("filter", "anti_join")
QUERIES: Final = 10_000
CACHE_BYTES: Final = 16 << 20
"""Small, so that it is full long before the first look at the memory."""
BARS: Final = {
    "wide_1_thread/8_threads": round(1 / 1.2, 4),
    "sub_1_thread/8_threads": round(1 / 0.4, 4),
    "sub_8_threads_p99_ms": 10.0,
    "sub_1_process/2_processes": round(1 / 1.8, 4),
    "memory_growth_mib": 32.0,
    "cache_mib": CACHE_BYTES / 2**20,
}
_SCHEMA: Final = """
node Person { handle: String @key  name: String  age: I32  city: String }
edge Knows: Person -> Person { since: I32  weight: F64 }
"""


def run() -> dict[str, Any]:
    nodes, edges = SIZES["large"]
    numbers: dict[str, Any] = {}
    with bench_folder(f"{nodes}-{edges}") as folder:
        make_files(folder, nodes, edges)
        Engine("people", "omnigraph", folder, folder).close()
        for name in ("sub", "wide"):
            one = _measure(folder, name, 1, 1)
            many = _measure(folder, name, THREADS, 1)
            two = _measure(folder, name, 1, PROCESSES)
            numbers |= {
                f"{name}_1_thread_per_s": one[0],
                f"{name}_8_threads_per_s": many[0],
                f"{name}_2_processes_per_s": two[0],
                f"{name}_1_thread/8_threads": round(one[0] / many[0], 4),
                f"{name}_1_process/2_processes": round(one[0] / two[0], 4),
                f"{name}_1_thread_p99_ms": one[1],
                f"{name}_8_threads_p99_ms": many[1],
            }
    environment = {**os.environ, "OMNIGRAPH_CACHE_BYTES": str(CACHE_BYTES)}
    command = [sys.executable, "-m", "benchmarks.concurrency", "memory"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    memory: dict[str, Any] = json.loads(done.stdout)
    return {**numbers, **memory}


def _measure(folder: Path, name: str, threads: int, processes: int) -> tuple[float, float]:
    """Queries per second of all of them together, and the slowest hundredth in ms."""
    command = [sys.executable, "-m", "benchmarks.concurrency", str(folder), name, str(threads)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for child in running:  # all are warm before any starts
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
    for child in running:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    found = [child.communicate()[0].split() for child in running]
    return round(sum(float(item[0]) for item in found), 1), max(float(item[1]) for item in found)


def _child(folder: str, name: str, threads: int) -> None:
    import omnigraph

    graph = omnigraph.open(Path(folder) / "omnigraph", read_only=True)
    chosen = {"sub": SUB, "wide": WIDE}[name]
    nodes = SIZES["large"][0]
    work = [(GQ[q], list(islice(parameters(q, nodes), 200))) for q in chosen]
    for text, given in work:
        for values in given[:10]:
            graph.query(text, params=values).rows()
    print("ready", flush=True)
    sys.stdin.readline()
    times: list[list[float]] = [[] for _ in range(threads)]
    started = perf_counter()

    def read(found: list[float], first: int) -> None:
        at = first
        while (now := perf_counter()) - started < SECONDS:
            text, given = work[at % len(work)]
            graph.query(text, params=given[at % len(given)]).rows()
            found.append(perf_counter() - now)
            at += 1

    readers = [threading.Thread(target=read, args=(own, at)) for at, own in enumerate(times)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    every = [item for own in times for item in own]
    print(len(every) / (perf_counter() - started), percentile(every, 99) * 1000)


def _memory() -> dict[str, Any]:
    """Mixed queries over changing versions: how much more memory the last three quarters take."""
    import omnigraph
    from omnigraph.engine.cache.memory_cache import shared_cache

    with tempfile.TemporaryDirectory() as where:
        graph = omnigraph.init(Path(where) / "g", _SCHEMA)
        people = [
            {"handle": f"p{at:08d}", "name": "n", "age": at % 60 + 18, "city": f"city{at % 20}"}
            for at in range(2_000)
        ]
        with graph.write() as batch:
            for person in people:
                batch.insert("Person", person)
            for at in range(2_000):
                ends = people[at]["handle"], people[at * 7 % 2_000]["handle"]
                batch.insert_edge(
                    "Knows", str(ends[0]), str(ends[1]), {"since": 2020, "weight": 1.0}
                )
        names = list(GQ)
        values = {name: parameters(name, 2_000) for name in names}
        peaks: list[float] = []
        for at in range(QUERIES):
            name = names[at % len(names)]
            graph.query(GQ[name], params=next(values[name])).rows()
            if at % 100 == 99:
                _write(graph, at)
            if at in (QUERIES // 4, QUERIES - 1):
                peaks.append(_resident_mib())
        growth = round(peaks[1] - peaks[0], 1)
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {
            "memory_growth_mib": growth,
            "memory_peak_mib": round(highest, 1),
            "cache_mib": round(shared_cache().nbytes / 2**20, 1),
        }


def _write(graph: Any, at: int) -> None:
    with graph.write() as batch:
        batch.insert("Person", {"handle": f"x{at}", "name": "x", "age": 30, "city": "city1"})


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        print(json.dumps(_memory()))
    else:
        _child(sys.argv[1], sys.argv[2], int(sys.argv[3]))
