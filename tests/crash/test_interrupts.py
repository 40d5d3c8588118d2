"""SIGINT at random times: interrupted writers lose and duplicate nothing.

``OMNIGRAPH_TEST_INTERRUPTS`` is the number of writes (default 30), each interrupted at a random
instant until it gets through; 1,000 take about five minutes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from tests.support.children import child_environment
from tests.support.internals import repository_of
from tests.support.promises import Expected, audited_operations, broken_promises

import omnigraph

WRITES = int(os.environ.get("OMNIGRAPH_TEST_INTERRUPTS", "30"))
LATEST_S = 0.08  # a write takes about half as long, so half of them are hit
INTERRUPTED_SHARE = 0.7  # the others get through
CHILD_S_MAX = 1_800.0
WORKER = Path(__file__).with_name("interrupted_worker.py")
SCHEMA = "node Note { text: String }\nnode Person { name: String @key }\n"


def test_W_2_random_interrupts_neither_lose_nor_double_a_write(tmp_path: Path) -> None:
    uri = str(tmp_path / "g")
    omnigraph.init(uri, SCHEMA)
    chance = random.Random(19)
    sent = 0
    with subprocess.Popen(
        [sys.executable, str(WORKER), uri, str(WRITES)],
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        limit = threading.Timer(CHILD_S_MAX, worker.kill)
        limit.start()
        said = ""
        for said in worker.stdout:
            if said.strip() == "go" and chance.random() < INTERRUPTED_SHARE:
                pause = threading.Event()
                pause.wait(chance.uniform(0, LATEST_S))
                os.kill(worker.pid, signal.SIGINT)
                sent += 1
        _, problems = worker.communicate()
        limit.cancel()
    if said.strip() != "done":  # the last interrupt may come when all is done
        assert "KeyboardInterrupt" in problems, problems
    graph = omnigraph.open(uri)
    pin = graph.snapshot().pin("node:Note")
    stored = Counter(repository_of(graph).tables.open(pin.ref).scan(["text"])["text"].to_pylist())
    assert sent >= WRITES // 2
    assert stored == Counter(map(str, range(WRITES)))
    assert broken_promises(uri, Expected(recovered=frozenset(audited_operations(uri)))) == []
    assert graph.maintenance.check().findings == []
