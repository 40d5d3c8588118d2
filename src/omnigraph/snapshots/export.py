"""Export of a snapshot as NDJSON; equal content gives equal bytes.

Types are ordered by type key, entities by id; every declared property is written, nulls included.
The output is the input format of a load: loading it into an empty graph of the same schema and
exporting again gives the same bytes. One snapshot is read, so concurrent writes have no effect.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from json.encoder import encode_basestring
from typing import Any, Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import TypeNotFound
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.model.calendar import DAY_MS
from omnigraph.model.cores import map_on_cores
from omnigraph.model.types import BASE64_PREFIX, PropertyType
from omnigraph.snapshots.sorted_rows import sorted_rows
from omnigraph.storage.lance.blobs import EXTERNAL_KIND
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

BATCH_ROWS: Final = 16_384
BLOB_BATCH_ROWS: Final = 64
"""The number of rows whose blobs are in memory at a time: blobs may be large."""

_ESCAPED: Final = r'["\\\x00-\x1f]'
"""Characters that JSON strings must escape."""
_ESCAPES: Final = {
    "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"
}  # fmt: skip
"""The short escapes; the backslash first."""
_CONTROL: Final = r"[\x00-\x1f]"

_TIMES: Final = {"date": ("int32", 1), "datetime": ("int64", DAY_MS)}
"""The integer type of stored times, and their units per day."""
_FIRST_DAY: Final = -719_528
_LAST_DAY: Final = 2_932_896
"""The years 0000 to 9999, for which Arrow's spelling is the canonical one."""


def export(
    repository: Repository,
    snapshot: SnapshotPins,
    schema: AcceptedSchema,
    types: Sequence[str] | None = None,
) -> Iterator[bytes]:
    """The snapshot as chunks of NDJSON; ``types`` restricts it to types of these names."""
    chosen = chosen_types(schema, types)
    tables = [(owner, repository.tables.open(snapshot.pin(owner.key).ref)) for owner in chosen]
    for owner, table in tables:
        yield from _export_type(owner, table)


def chosen_types(schema: AcceptedSchema, types: Sequence[str] | None) -> list[NodeType | EdgeType]:
    everything = sorted(schema.types(), key=lambda owner: owner.key)
    if types is None:
        return everything
    names = {owner.name for owner in everything}
    for name in types:
        if name not in names:
            hint = did_you_mean(name, names)
            raise TypeNotFound(f"there is no type {name!r}" + (f"; {hint}" if hint else ""))
    return [owner for owner in everything if owner.name in types]


def _export_type(owner: NodeType | EdgeType, table: PinnedTable) -> Iterator[bytes]:
    if not table.rows:
        return
    rows = sorted_rows(table, batch_rows(owner), with_row_id=has_blobs(owner))
    yield from map_on_cores(partial(encode_rows, owner, table), rows)


def has_blobs(owner: NodeType | EdgeType) -> bool:
    return any(item.type.is_blob for item in owner.properties.values())


def batch_rows(owner: NodeType | EdgeType) -> int:
    """The number of rows that are encoded at a time."""
    return BLOB_BATCH_ROWS if has_blobs(owner) else BATCH_ROWS


def encode_rows(owner: NodeType | EdgeType, table: PinnedTable, rows: pa.Table) -> bytes:
    """Rows of a table as NDJSON lines; of a type with blobs they have their row ids."""
    if not rows.num_rows:
        return b""
    pieces, columns = _template(owner)
    parts: list[Any] = [pa.scalar(pieces[0])]
    for piece, (name, kind) in zip(pieces[1:], columns, strict=True):
        parts += [_encode(table, rows, name, kind), pa.scalar(piece)]
    lines = pc.binary_join_element_wise(*parts, "")
    return _joined(lines)


def _joined(lines: pa.Array) -> bytes:
    """The concatenation of strings, which are contiguous in the Arrow buffer."""
    whole = lines.cast(pa.large_string())
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.combine_chunks()
    offsets = whole.buffers()[1]
    first, last = whole.offset, whole.offset + len(whole)
    bounds = memoryview(offsets).cast("q")
    return bytes(whole.buffers()[2][bounds[first] : bounds[last]])


def _template(owner: NodeType | EdgeType) -> tuple[list[str], list[tuple[str, PropertyType]]]:
    """The constant text around the values of a line, and the columns of the values."""
    every = {column.name: column.type for column in owner.columns()}
    data = {name: kind for name, kind in every.items() if name not in owner.endpoints}
    if isinstance(owner, NodeType):
        fields, opening = list(data.items()), [f'{{"type":"{owner.name}","data":{{']
    else:
        fields = [*((name, every[name]) for name in owner.endpoints), *data.items()]
        opening = [f'{{"edge":"{owner.name}","from":', ',"to":', ',"data":{']
    names = [f'"{name}":' for name in data]
    pieces = [*opening[:-1], opening[-1] + names[0], *(f",{name}" for name in names[1:])]
    return [*pieces, "}}\n"], fields


def _encode(table: PinnedTable, rows: pa.Table, name: str, kind: PropertyType) -> pa.Array:
    """The values of one column as JSON."""
    if kind.is_blob:
        texts = _encode_blobs(table, name, rows)
        return pa.array(texts, type=pa.string())
    values = rows[name].combine_chunks()
    if kind.scalar.family in _TIMES:
        item = getattr(pa, _TIMES[kind.scalar.family][0])()
        values = values.cast(pa.list_(item) if kind.is_list else item)
    found = _encode_whole(values, kind) if kind.is_single else None
    if found is not None:
        return pc.fill_null(found, "null")
    encode = _encoder(kind)
    if kind.is_list or kind.is_vector:
        texts = [_list(value, encode) for value in values.to_pylist()]
    else:
        texts = ["null" if value is None else encode(value) for value in values.to_pylist()]
    return pa.array(texts, type=pa.string())


def _encode_whole(values: pa.Array, kind: PropertyType) -> pa.Array | None:
    """Encode a whole column in Arrow; None when values must be encoded one by one."""
    match kind.scalar.family:
        case "string":
            return _encode_strings(values)
        case "bool" | "integer":
            return values.cast(pa.string())
        case "float":
            return None  # only Python spells floats with the fewest digits that read back exactly
        case "date" | "datetime":
            return _encode_times(values, kind.scalar.family)
        case "blob":
            return None
        case family:
            assert_never(family)


def _encode_strings(values: pa.Array) -> pa.Array | None:
    """Strings as JSON; None when one has a control character, which needs a numeric escape."""
    if pc.any(pc.match_substring_regex(values, _ESCAPED)).as_py():
        for character, escape in _ESCAPES.items():
            values = pc.replace_substring(values, character, escape)
        if pc.any(pc.match_substring_regex(values, _CONTROL)).as_py():
            return None
    return pc.binary_join_element_wise('"', values, '"', "")


def _encode_times(values: pa.Array, family: str) -> pa.Array | None:
    """Times as JSON strings; None when a year does not have four digits."""
    per_day = _TIMES[family][1]
    bounds = pc.min_max(values).as_py()
    if bounds["min"] is None:
        return values.cast(pa.string())
    if bounds["min"] < _FIRST_DAY * per_day or bounds["max"] >= (_LAST_DAY + 1) * per_day:
        return None
    if family == "date":
        return pc.binary_join_element_wise('"', values.cast(pa.date32()).cast(pa.string()), '"', "")
    texts = pc.replace_substring(values.cast(pa.timestamp("ms")).cast(pa.string()), " ", "T")
    return pc.binary_join_element_wise('"', texts, 'Z"', "")


def _encoder(kind: PropertyType) -> Callable[[Any], str]:
    """The function that encodes one value of a scalar, or one item of a list."""
    produce = kind.scalar.produce
    match kind.scalar.family:
        case "string" | "blob":
            return encode_basestring
        case "bool":
            return lambda value: "true" if value else "false"
        case "integer":
            return str
        case "float":
            return lambda value: repr(produce(value))
        case "date" | "datetime":
            return lambda value: f'"{produce(value)}"'
        case family:
            assert_never(family)


def _list(values: list[Any] | None, encode: Callable[[Any], str]) -> str:
    if values is None:
        return "null"
    return f"[{','.join('null' if item is None else encode(item) for item in values)}]"


def _encode_blobs(table: PinnedTable, name: str, rows: pa.Table) -> list[str]:
    texts = ["null"] * rows.num_rows
    owned = []
    for at, descriptor in enumerate(rows[name].to_pylist()):
        if descriptor is None:
            continue
        if descriptor["kind"] == EXTERNAL_KIND:
            texts[at] = encode_basestring(descriptor["blob_uri"])
        else:
            owned.append(at)
    if owned:
        with translated(f"reading blobs of {table.ref.path}"):
            ids = rows[ROW_ID].combine_chunks().take(owned)
            found = table.dataset.read_blobs(name, ids=ids)
        for at, (_, value) in zip(owned, found, strict=True):
            texts[at] = f'"{BASE64_PREFIX}{b64encode(value or b"").decode("ascii")}"'
    return texts
