"""Strict updates from several processes, with colliding keys, an index and a compactor.

Depends on it: everything that calls ``TableStore.commit``. The strictness matrix shows two writers
in one process and in a known order; here nobody knows the order.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.guards.concurrent_updates_worker import COUNTERS, compact, increment, total
from tests.guards.support import PATH, content, create, index, insert, new_store

WRITERS = 4
COMMITS_EACH = 20


@pytest.mark.slow
@pytest.mark.parametrize("indexed", [False, True])
def test_nothing_is_lost_or_doubled(tmp_path: Path, indexed: bool) -> None:
    store = new_store(tmp_path)
    table = insert(store, insert(store, create(store), COUNTERS[:3]), COUNTERS[3:])
    if indexed:
        table = index(store, table, "id")

    outcomes, compactions = _fire(tmp_path)

    commits = WRITERS * COMMITS_EACH
    landings = list(chain.from_iterable(outcome["landed"] for outcome in outcomes))
    assert len(landings) == commits
    assert all(after == pinned + 1 for pinned, after in landings)
    assert len({after for _, after in landings}) == commits  # one winner per version
    assert total(tmp_path) == commits  # no increment was lost

    newest = new_store(tmp_path).open_newest(PATH)
    assert newest.ref.version == table.ref.version + commits + compactions
    found = content(newest)  # fails on an id that is stored twice
    assert len([id_ for id_ in found if id_.startswith("key-")]) > 0
    for id_, n in found.items():
        assert newest.scan(["n"], f"id = '{id_}'")["n"].to_pylist() == [n]
    newest.dataset.validate()


def _fire(directory: Path) -> tuple[list[dict[str, Any]], int]:
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        ProcessPoolExecutor(WRITERS + 1, mp_context=context) as pool,
    ):
        barrier, stop = manager.Barrier(WRITERS + 1), manager.Event()
        compactor = pool.submit(compact, directory, stop, barrier)
        writers = [
            pool.submit(increment, directory, seed, COMMITS_EACH, barrier)
            for seed in range(WRITERS)
        ]
        try:
            outcomes = [writer.result(180) for writer in writers]
        finally:
            stop.set()
        return outcomes, compactor.result(60)
