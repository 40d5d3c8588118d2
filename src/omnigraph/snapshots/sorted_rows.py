"""The rows of a table by id, in bounded memory: an external merge sort.

Rows are read in storage order. What fits is sorted in memory; more is written to sorted runs in a
temporary directory of this machine, which are then merged block by block.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.tables import PinnedTable

SORT_BYTES: Final = 128 << 20
"""Rows that are sorted in memory at a time."""

BLOCK_BYTES: Final = 1 << 20
"""Rows of a run that are read at a time while runs are merged."""

READ_ROWS: Final = 8_192


def sorted_rows(
    table: PinnedTable, block_rows: int, *, with_row_id: bool = False, sort_bytes: int = SORT_BYTES
) -> Iterator[pa.Table]:
    """All rows in the order of their ids, in blocks of at most ``block_rows``."""
    with translated(f"reading {table.ref.path}"):
        batches = table.dataset.scanner(
            columns=table.schema.names,
            with_row_id=with_row_id,
            batch_size=READ_ROWS,
            scan_in_order=True,
        ).to_batches()
        with tempfile.TemporaryDirectory(prefix="omnigraph-sort-") as folder:
            runs: list[Path] = []
            for held, is_last in _portions(batches, sort_bytes):
                if is_last and not runs:
                    yield from _sorted(held, block_rows)
                    return
                runs.append(_write_run(held, Path(folder) / f"{len(runs)}.arrow"))
            yield from _merged([_read_run(path) for path in runs], block_rows)


def _portions(batches: Iterable[pa.RecordBatch], bytes_max: int) -> Iterator[tuple[pa.Table, bool]]:
    """The rows in tables of about ``bytes_max``, and whether each is the last."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if size > bytes_max:
            yield pa.Table.from_batches(held).combine_chunks(), False
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield pa.Table.from_batches(held).combine_chunks(), True


def _sorted(rows: pa.Table, block_rows: int) -> Iterator[pa.Table]:
    order = pc.sort_indices(rows["id"])
    for start in range(0, len(order), block_rows):
        yield rows.take(order[start : start + block_rows])


def _write_run(rows: pa.Table, path: Path) -> Path:
    block_rows = max(rows.num_rows * BLOCK_BYTES // max(rows.nbytes, 1), 1)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        for block in _sorted(rows, block_rows):
            writer.write_table(block.combine_chunks())
    return path


def _read_run(path: Path) -> Iterator[pa.Table]:
    with pa.OSFile(str(path), "rb") as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])


def _merged(runs: list[Iterator[pa.Table]], block_rows: int) -> Iterator[pa.Table]:
    """Merge sorted runs: what is not greater than the smallest last id of all blocks comes next."""
    heads = [(next(run), run) for run in runs]
    while heads:
        bound = min(head["id"][-1].as_py() for head, _ in heads)
        taken, left = [], []
        for head, run in heads:
            count = pc.sum(pc.less_equal(head["id"], bound)).as_py()
            taken.append(head.slice(0, count))
            rest: pa.Table | None = head.slice(count)
            if count == head.num_rows:
                rest = next(run, None)
            if rest is not None:
                left.append((rest, run))
        heads = left
        yield from _sorted(pa.concat_tables(taken).combine_chunks(), block_rows)
