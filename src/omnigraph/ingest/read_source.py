"""Reading the source of a load into rows by type: files, bytes, tables, records and mappings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.ingest.frames import as_table, is_tabular, require_type
from omnigraph.ingest.load import LoadSource, LoadSpec
from omnigraph.ingest.ndjson import CompatibleReader, StrictReader
from omnigraph.ingest.records import RecordReader
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.ingest.sources import SourceFile, find_files, from_bytes, opened, recognise
from omnigraph.ingest.tabular import find_type, read_csv, read_parquet, read_table
from omnigraph.lang.schema import EdgeType
from omnigraph.settings import StorageSettings


def read_source(
    spec: LoadSpec,
    collector: RowCollector,
    storage: StorageSettings,
    count_bytes: Callable[[int], None],
) -> None:
    """Collect every record of a source. ``count_bytes`` is called with the bytes read since."""
    _SourceReader(spec, collector, storage, count_bytes).read(spec.source, spec.type_name)


class _SourceReader:
    def __init__(
        self,
        spec: LoadSpec,
        collector: RowCollector,
        storage: StorageSettings,
        count_bytes: Callable[[int], None],
    ) -> None:
        self._spec = spec
        self._collector = collector
        self._storage = storage
        self._schema = collector.schema
        self._count_bytes = count_bytes

    def read(self, source: LoadSource, type_name: str | None) -> None:
        if isinstance(source, str | os.PathLike):
            for file in find_files(source, self._storage):
                self._read_file(file, type_name)
        elif isinstance(source, bytes | bytearray | memoryview):
            self._read_file(from_bytes(bytes(source)), type_name)
        elif isinstance(source, Mapping):
            for name, inner in source.items():
                self.read(inner, name)
        elif is_tabular(source):
            name = require_type(source, type_name)
            self._collector.begin_file(f"<{name}>")
            owner, columns = find_type(self._schema, name), self._spec.columns
            read_table(self._collector, owner, as_table(source, owner, columns), columns)
        elif isinstance(source, Iterable):
            self._read_records(source, type_name)
        else:
            raise InvalidInput(
                f"cannot load from {type(source).__name__}",
                remedy="Give a path, bytes, a table or frame, records, or a mapping of types.",
            )

    def _read_file(self, file: SourceFile, type_name: str | None) -> None:
        self._collector.begin_file(file.name)
        with opened(file) as stream:
            kind = self._spec.format or recognise(file, stream)
            if kind == "ndjson" and type_name is None:
                if self._spec.strict:
                    StrictReader(self._collector, self._count_bytes).read(stream)
                else:
                    CompatibleReader(self._collector).read(stream)
                return
            if type_name is None:
                raise InvalidInput(
                    f"{file.name} is {kind}, whose rows do not name their type",
                    remedy="Name the type of the rows (`--type Person`).",
                )
            owner = find_type(self._schema, type_name)
            read = read_parquet if kind == "parquet" else read_csv
            read(self._collector, owner, stream, self._spec.columns, file.name)

    def _read_records(self, records: Iterable[Any], type_name: str | None) -> None:
        """Records in the load format, or plain values of one type."""
        self._collector.begin_file("<records>")
        reader = RecordReader(self._collector, strict=self._spec.strict)
        if type_name is None:
            for number, record in enumerate(records, 1):
                reader.read(record, number)
            return
        owner = find_type(self._schema, type_name)
        self._collector.occurs(owner.key)
        for number, values in enumerate(records, 1):
            reader.read(_wrapped(owner.kind, owner.name, values), number)


def _wrapped(kind: str, name: str, values: Any) -> Any:
    """Plain values of one type as a record; an edge names its ends `from` and `to`."""
    if not isinstance(values, Mapping):
        return values
    if kind == "node":
        return {"type": name, "data": values}
    words = EdgeType.endpoints.values()
    outside = {field: values[field] for field in words if field in values}
    data = {field: value for field, value in values.items() if field not in outside}
    return {"edge": name, **outside, "data": data}
