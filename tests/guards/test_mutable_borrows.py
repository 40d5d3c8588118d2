"""Which calls borrow a dataset object mutably: threads that share the object then fail.

``PinnedTable.dataset`` is shared, so these calls go to ``private_dataset()``. A shallow copy is an
object of its own that costs no request.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance.optimize import Compaction
from tests.architecture.committing_calls import BORROWS_MUTABLY

ROWS = 200_000
BUSY = "sin(v) > 0.5 and cos(v) > 0.1 and id like '%7%9%'"
"""Slow to count: the borrow of whoever does it lasts for as long."""
WAIT_S = 60.0

Call = Callable[[lance.LanceDataset], object]


def _build_index(dataset: lance.LanceDataset) -> lance.Index:
    return dataset.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[1], replace=True)


MUTABLE: dict[str, Call] = {
    "create_branch": lambda dataset: dataset.create_branch(f"b{time.monotonic_ns()}"),
    "create_index_uncommitted": _build_index,
    "get_transactions": lambda dataset: dataset.get_transactions(),
    "read_transaction": lambda dataset: dataset.read_transaction(1),
}
SHARED: dict[str, Call] = {
    "base_paths": lambda dataset: dataset.base_paths(),
    "compaction plan": lambda dataset: Compaction.plan(dataset, {}),
    "count_rows": lambda dataset: dataset.count_rows(),
    "delete_rows": lambda dataset: dataset.get_fragment(1).delete_rows([1]),
    "delta": lambda dataset: dataset.delta(compared_against=1),
    "describe_indices": lambda dataset: dataset.describe_indices(),
    "fragments": lambda dataset: [f.metadata for f in dataset.get_fragments()],
    "index_stats": lambda dataset: dataset.stats.index_stats("v_idx"),
    "join of index parts": lambda dataset: dataset.merge_existing_index_segments(
        [_build_index(copy.copy(dataset))]
    ),
    "lance_schema": lambda dataset: dataset.lance_schema.fields(),
    "scan": lambda dataset: dataset.scanner(filter="v = 3", with_row_id=True).to_table(),
    "take": lambda dataset: dataset.take([1]),
    "take by row id": lambda dataset: dataset._take_rows([1], columns=["id"]),
    "to_batches": lambda dataset: next(iter(dataset.to_batches())),
    "write_fragments": lambda dataset: write_fragments(
        pa.table({"id": ["x"], "v": [1]}), dataset, mode="append"
    ),
}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("borrowing") / "t")
    rows = pa.table({"id": [f"k{n}" for n in range(ROWS)], "v": list(range(ROWS))})
    lance.write_dataset(rows, uri, enable_stable_row_ids=True)
    dataset = lance.write_dataset(rows.slice(0, 10), uri, mode="append")
    dataset.create_scalar_index("v", "BTREE")
    return uri


@pytest.fixture
def busy(where: str) -> Iterator[lance.LanceDataset]:
    """A dataset object that another thread is nearly always counting rows on."""
    dataset = lance.dataset(where)
    over, counted = threading.Event(), threading.Event()

    def count() -> None:
        while not over.is_set():
            try:
                dataset.count_rows(filter=BUSY)
            except RuntimeError:
                continue
            counted.set()

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert counted.wait(WAIT_S)
    yield dataset
    over.set()
    for thread in threads:
        thread.join(WAIT_S)


@pytest.mark.parametrize("name", MUTABLE)
def test_a_call_that_borrows_mutably_fails_on_a_shared_object(
    busy: lance.LanceDataset, name: str
) -> None:
    deadline = time.monotonic() + WAIT_S
    with pytest.raises(RuntimeError, match="Already borrowed"):
        while time.monotonic() < deadline:
            MUTABLE[name](busy)


@pytest.mark.parametrize("name", MUTABLE)
def test_it_succeeds_on_a_copy_and_disturbs_nobody(busy: lance.LanceDataset, name: str) -> None:
    version = busy.version
    for _ in range(3):
        MUTABLE[name](copy.copy(busy))
    assert busy.version == version


@pytest.mark.parametrize("name", SHARED)
def test_other_calls_run_side_by_side(busy: lance.LanceDataset, name: str) -> None:
    for _ in range(5):
        SHARED[name](busy)


def test_the_calls_are_those_that_the_source_is_searched_for() -> None:
    assert set(MUTABLE) <= BORROWS_MUTABLY
