"""The shuffle: one object per task, of which a reader asks for its buckets only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.faulty import FaultyStore
from tests.support.stores import open_objects

from omnigraph.bulk.load import shuffle
from omnigraph.bulk.load.shuffle import Shuffled, ShuffleWriter, bucket_of
from omnigraph.storage.locations import parse_location

ROWS = 4_000


@pytest.fixture
def objects(tmp_path: Path) -> FaultyStore:
    return FaultyStore(open_objects(parse_location(str(tmp_path))))


def _table(task: int) -> pa.Table:
    ids = [f"k{number}" for number in range(ROWS)]
    return pa.table({"id": ids, "task": [task] * ROWS})


def _written(objects: FaultyStore, buckets: int, tasks: int = 3) -> Shuffled:
    files = []
    for task in range(tasks):
        writer = ShuffleWriter(buckets)
        table = _table(task)
        writer.add("ids/a", table, table["id"])
        writer.add("rows/a", table, table["id"])
        files.append(writer.write(objects, "keys"))
    return Shuffled(buckets).and_([*files, None])


@pytest.mark.parametrize("buckets", [1, 7, 3_000])
def test_a_bucket_has_all_rows_of_its_values_in_the_order_of_the_tasks(
    buckets: int, objects: FaultyStore
) -> None:
    shuffled = _written(objects, buckets)
    seen = 0
    for some in shuffled.ranges():
        for tables in shuffled.read(objects, some, ("ids/",)):
            (table,) = tables.values()
            (number,) = set(bucket_of(table["id"], buckets).tolist())
            assert number in some
            assert table["task"].to_pylist() == sorted(table["task"].to_pylist())
            seen += table.num_rows
    assert seen == 3 * ROWS


def test_a_task_writes_one_object_and_a_reader_asks_each_for_an_index_and_a_range(
    objects: FaultyStore,
) -> None:
    shuffled = _written(objects, 500)
    assert objects.counts() == {"put": 3}
    objects.reset_log()
    assert len(list(shuffled.read(objects, range(100, 110)))) == 10
    assert objects.counts() == {"get": 6}


def test_many_buckets_are_read_by_few_tasks() -> None:
    file = shuffle.ShuffleFile("a", 1)
    few, many = Shuffled(1_000, (file,)), Shuffled(11_250, (file,))
    assert len(few.ranges()) == 1_000
    assert len(many.ranges()) < shuffle.TASKS_MAX + 1
    assert [n for some in many.ranges() for n in some] == list(range(11_250))
    assert Shuffled(10).ranges() == []


def test_more_than_fits_into_memory_is_read_from_a_file(
    objects: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffled = _written(objects, 5)
    expected = list(shuffled.read(objects, range(5)))
    monkeypatch.setattr(shuffle, "SPILL_BYTES", 100)
    assert list(shuffled.read(objects, range(5))) == expected
