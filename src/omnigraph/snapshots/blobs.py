"""Blob access: metadata, entity tag, and ranges of bytes.

A managed blob has a strong ETag that changes whenever its entity does, computed without reading the
bytes. A reference to external bytes has neither size nor ETag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import BlobRangeInvalid, EntityNotFound, InvalidInput
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model import arguments
from omnigraph.storage.lance.blobs import EXTERNAL_KIND
from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.lookup import value_filter
from omnigraph.storage.lance.row_versions import WRITTEN
from omnigraph.storage.lance.tables import ROW_ID, PinnedTable

CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BlobSelector:
    """Selects one blob. ``entity`` is ``node`` or ``edge``."""

    entity: str
    type_name: str
    id: str
    property_name: str

    @property
    def type_key(self) -> str:
        return f"{self.entity}:{self.type_name}"

    def to_json(self) -> dict[str, str]:
        return {
            "entity": self.entity,
            "type": self.type_name,
            "id": self.id,
            "property": self.property_name,
        }


@dataclass(frozen=True, slots=True)
class Blob:
    """One stored blob. ``read`` and ``chunks`` work for managed values only."""

    selector: BlobSelector
    size: int | None
    etag: str | None
    uri: str | None
    snapshot: str
    """The commit it was found at."""
    _table: PinnedTable
    _row_id: int

    @property
    def kind(self) -> str:
        return "managed" if self.uri is None else "external"

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """A range of the bytes, by default all; a range past the end is truncated."""
        return b"".join(self.chunks(offset, length))

    def chunks(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The same in chunks, so that a large blob need not fit into memory."""
        arguments.whole("offset", offset)
        arguments.optional_whole("length", length)
        if self.uri is not None or self.size is None:
            raise InvalidInput(
                "this blob is a reference to external bytes",
                remedy="Read the bytes from the URI that `blob stat` shows.",
                details={"uri": self.uri},
            )
        end = self.size if length is None else offset + length
        if offset < 0 or end < offset or offset > self.size or (length and offset >= self.size):
            raise BlobRangeInvalid(offset, end, self.size)
        return self._pieces(offset, min(end, self.size))

    def _pieces(self, at: int, end: int) -> Iterator[bytes]:
        name = self.selector.property_name
        with translated(f"reading a blob of {self._table.ref.path}"):
            (file,) = self._table.dataset.take_blobs(name, ids=[self._row_id])
            file.seek(at)
            while at < end:
                piece = file.read(min(CHUNK_BYTES, end - at))
                if not piece:
                    return
                at += len(piece)
                yield piece


def find_blob(
    repository: Repository, snapshot: SnapshotPins, schema: AcceptedSchema, selector: BlobSelector
) -> Blob:
    """The selected blob; raises a typed error if the selector does not match."""
    if selector.entity not in ("node", "edge"):
        raise InvalidInput(f"`entity` must be `node` or `edge`, not {selector.entity!r}")
    owner = schema.type(selector.type_key)
    declared = owner.properties.get(selector.property_name)
    if declared is None or not declared.type.is_blob:
        raise InvalidInput(f"{owner.name} has no Blob property {selector.property_name!r}")
    pin = snapshot.pin(owner.key)
    table = repository.tables.open(pin.ref)
    condition = value_filter("id", pa.array([selector.id], pa.string()))
    columns = [selector.property_name, WRITTEN]
    rows = table.scan(columns, condition, with_row_id=True).to_pylist()
    if not rows:
        raise EntityNotFound(f"there is no {owner.name} with id {selector.id!r}")
    descriptor = rows[0][selector.property_name]
    if descriptor is None:
        raise EntityNotFound(f"{owner.name} {selector.id!r} has no {selector.property_name}")
    if descriptor["kind"] == EXTERNAL_KIND:
        return Blob(selector, None, None, descriptor["blob_uri"], snapshot.commit_id, table, 0)
    tag = _tag(pin.ref.path, pin.ref.branch, declared.property_id, rows[0])
    at = snapshot.commit_id
    return Blob(selector, descriptor["size"], tag, None, at, table, rows[0][ROW_ID])


def _tag(path: str, branch: str | None, property_id: str, row: dict[str, Any]) -> str:
    """The ETag: changes with every change of the entity; may differ between branches."""
    identity = f"{path}\0{branch}\0{property_id}\0{row[ROW_ID]}\0{row[WRITTEN]}"
    return '"' + hashlib.blake2b(identity.encode(), digest_size=16).hexdigest() + '"'
