"""The processes of ``test_concurrent_updates.py``. Spawned processes import it by name."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from tests.guards.support import PATH, TYPE, content, new_store, properties, rows

from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction

COUNTERS = [f"counter-{n}" for n in range(6)]
DEADLINE_S = 120


def increment(directory: Path, seed: int, commits: int, barrier: Any) -> dict[str, Any]:
    """Add one to a random counter and upsert a key that others upsert, too, ``commits`` times."""
    store, choose = new_store(directory), random.Random(seed)
    landed, refused = [], 0
    barrier.wait(60)
    deadline = time.monotonic() + DEADLINE_S
    while len(landed) < commits:
        assert time.monotonic() < deadline, "the writers starved"
        table = store.open_newest(PATH)
        counter, key = choose.choice(COUNTERS), f"key-{len(landed)}"
        (now,) = table.scan(["n"], f"id = '{counter}'")["n"].to_pylist()
        changed = rows([counter], now + 1)
        both = changed if choose.random() < 0.3 else _with(changed, key)
        staged = staging.stage_upsert(table, both, properties(str(seed)), type_key=TYPE)
        try:
            landed.append((table.ref.version, store.commit(staged).ref.version))
        except CommitRefused:
            refused += 1
    return {"landed": landed, "refused": refused}


def compact(directory: Path, stop: Any, barrier: Any) -> int:
    """Rewrite small fragments for as long as the others write."""
    store, done = new_store(directory), 0
    barrier.wait(60)
    while not stop.is_set():
        staged = stage_compaction(store.open_newest(PATH), properties("compaction"))
        if staged is not None:
            try:
                store.commit(staged)
                done += 1
            except CommitRefused:
                pass
        stop.wait(0.02)
    return done


def total(directory: Path) -> int:
    table = new_store(directory).open_newest(PATH)
    return sum(n for id_, n in content(table).items() if id_ in COUNTERS)


def _with(changed: Any, key: str) -> Any:
    import pyarrow as pa

    return pa.concat_tables([changed, rows([key], 0)])
