"""Export: a snapshot as NDJSON, byte for byte the same whenever its content is the same.

Types in the order of their type keys, entities by id, every declared property, nulls included. The
output is the input format of a load; loading it into an empty graph of the same schema and
exporting that gives the same bytes. One snapshot is read: concurrent writes change nothing.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import TypeNotFound
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.storage.blobs import EXTERNAL_KIND
from omnigraph.storage.lance_errors import translated
from omnigraph.storage.tables import PinnedTable
from omnigraph.syntax import did_you_mean
from omnigraph.types import BASE64_PREFIX, PropertyType

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 16_384
BLOB_BATCH_ROWS: Final = 64
"""Blobs may be large: only a few rows' worth are held at a time."""

_INTEGERS: Final = {"date": "int32", "datetime": "int64"}


def export(
    repository: Repository,
    snapshot: SnapshotPins,
    schema: AcceptedSchema,
    types: Sequence[str] | None = None,
) -> Iterator[bytes]:
    """The snapshot as chunks of NDJSON; ``types`` restricts it to types of these names."""
    chosen = _chosen(schema, types)
    tables = [(owner, repository.tables.open(snapshot.pin(owner.key).ref)) for owner in chosen]
    for owner, table in tables:
        yield from _export_type(owner, table)


def _chosen(schema: AcceptedSchema, types: Sequence[str] | None) -> list[NodeType | EdgeType]:
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
    import pyarrow.compute as pc

    if not table.rows:
        return
    order = pc.sort_indices(table.scan(["id"])["id"])
    has_blobs = any(item.type.is_blob for item in owner.properties.values())
    size = BLOB_BATCH_ROWS if has_blobs else BATCH_ROWS
    template, columns = _template(owner)
    for start in range(0, len(order), size):
        positions = order[start : start + size]
        with translated(f"reading {table.ref.path}"):
            rows = table.dataset.take(positions)
        cells = [_encode(table, rows, name, kind, positions) for name, kind in columns]
        yield "".join(map(template.__mod__, zip(*cells, strict=True))).encode("utf-8")


def _template(owner: NodeType | EdgeType) -> tuple[str, list[tuple[str, PropertyType]]]:
    """A line with a hole for each column, and the columns in the order of the holes."""
    every = {column.name: column.type for column in owner.columns()}
    data = {name: kind for name, kind in every.items() if name not in ("src", "dst")}
    members = ",".join(f'"{name}":%s' for name in data)
    if isinstance(owner, NodeType):
        return f'{{"type":"{owner.name}","data":{{{members}}}}}\n', list(data.items())
    ends = [(name, every[name]) for name in ("src", "dst")]
    line = f'{{"edge":"{owner.name}","from":%s,"to":%s,"data":{{{members}}}}}\n'
    return line, [*ends, *data.items()]


def _encode(
    table: PinnedTable, rows: pa.Table, name: str, kind: PropertyType, positions: pa.Array
) -> list[str]:
    """The values of one column as JSON texts."""
    import pyarrow as pa

    if kind.is_blob:
        return _encode_blobs(table, name, rows[name].to_pylist(), positions)
    values = rows[name]
    integers = _INTEGERS.get(kind.scalar.family)
    if integers is not None:
        item = getattr(pa, integers)()
        values = values.cast(pa.list_(item) if kind.is_list else item)
    encode = _encoder(kind)
    if kind.is_list or kind.is_vector:
        return [_list(value, encode) for value in values.to_pylist()]
    return ["null" if value is None else encode(value) for value in values.to_pylist()]


def _encoder(kind: PropertyType) -> Callable[[Any], str]:
    family = kind.scalar.family
    if family == "string":
        return encode_basestring
    if family == "bool":
        return lambda value: "true" if value else "false"
    if family == "float":
        shown = kind.scalar.export
        return lambda value: repr(shown(value))
    return str


def _list(values: list[Any] | None, encode: Callable[[Any], str]) -> str:
    if values is None:
        return "null"
    return f"[{','.join('null' if item is None else encode(item) for item in values)}]"


def _encode_blobs(
    table: PinnedTable, name: str, descriptors: list[Any], positions: pa.Array
) -> list[str]:
    texts = ["null"] * len(descriptors)
    owned = []
    for at, descriptor in enumerate(descriptors):
        if descriptor is None:
            continue
        if descriptor["kind"] == EXTERNAL_KIND:
            texts[at] = encode_basestring(descriptor["blob_uri"])
        else:
            owned.append(at)
    if owned:
        with translated(f"reading blobs of {table.ref.path}"):
            found = table.dataset.read_blobs(name, indices=positions.take(owned))
        for at, (_, value) in zip(owned, found, strict=True):
            texts[at] = f'"{BASE64_PREFIX}{b64encode(value or b"").decode("ascii")}"'
    return texts
