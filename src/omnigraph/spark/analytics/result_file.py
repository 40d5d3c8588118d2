"""Writing the values of an analysis to one Parquet, CSV or NDJSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from omnigraph.errors import AlreadyExists, InvalidInput
from omnigraph.model.ids import new_ulid

SUFFIXES: Final = (".parquet", ".csv", ".jsonl")


def save(tables: Iterator[pa.Table], schema: pa.Schema, target: str | os.PathLike[str]) -> None:
    """Write tables to a new file, atomically."""
    path = os.path.abspath(os.fspath(target))
    suffix = os.path.splitext(path)[1]
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"{target} has no known suffix", remedy=f"Use one of {', '.join(SUFFIXES)}."
        )
    if os.path.exists(path):
        raise AlreadyExists(f"{target} exists already", remedy="Name a new file.")
    temporary = f"{path}.{new_ulid()}"
    try:
        with _writer(temporary, suffix, schema) as writer:
            for table in tables:
                writer.write_table(table)
        os.rename(temporary, path)
    except (OSError, ValueError) as problem:
        raise InvalidInput(f"{str(target)!a} cannot be written: {problem}") from problem
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _writer(path: str, suffix: str, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        return pq.ParquetWriter(path, schema)
    if suffix == ".csv":
        return csv.CSVWriter(path, schema)
    return _NdjsonWriter(path)


class _NdjsonWriter:
    """Writes one JSON object per row."""

    def __init__(self, path: str) -> None:
        self._out = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed when left

    def __enter__(self) -> _NdjsonWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()

    def write_table(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            for row in batch.to_pylist():
                self._out.write(json.dumps(row, ensure_ascii=False) + "\n")
