"""One of several processes that stress one graph: four threads on one handle."""

from __future__ import annotations

import json
import sys
import threading
import time

import omnigraph
from tests.threads.workload import OPERATIONS, Model, Worker, race

THREADS = 4
SLICE_S = 0.5


def main(where: str, name: str, seconds: float) -> None:
    graph, model, lock = omnigraph.open(where), Model(), threading.Lock()
    workers = [Worker(graph, f"{name}{n}", model, lock) for n in range(THREADS)]
    until = time.monotonic() + seconds
    while True:
        chosen = workers[0].random.choices(list(OPERATIONS), k=THREADS)
        race(workers, chosen, SLICE_S)
        if time.monotonic() > until:
            break
    print(json.dumps(model.to_json()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
