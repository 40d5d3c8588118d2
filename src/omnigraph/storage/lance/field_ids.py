"""Lance schemas with stable field ids, decoded and changed as protobuf messages.

Data files refer to field ids and not to names, so a column can be renamed, hidden, dropped or added
without a rewrite. A Lance schema built from an Arrow schema gets new field ids, which silently
swaps the data of columns; so schemas are decoded, changed and encoded here in their serialised
form, one protobuf message per field. Nothing here opens a table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from lance.schema import LanceSchema

# Protobuf field numbers of the members that this module changes.
_NAME: Final = 2
_ID: Final = 3
_PARENT: Final = 4
_NULLABLE: Final = 6
_NO_PARENT: Final = 2**64 - 1  # -1 as an unsigned varint
_VARINT: Final = 0
_BYTES: Final = 2

_Member = tuple[int, int | bytes]


@dataclass(frozen=True, slots=True)
class StoredField:
    """One field: a column, or a child of the nested column before it."""

    members: tuple[_Member, ...]

    @property
    def name(self) -> str:
        return bytes(self._get(_NAME, b"")).decode()

    @property
    def id(self) -> int:
        return int(self._get(_ID, 0))

    @property
    def parent(self) -> int | None:
        parent = int(self._get(_PARENT, 0))
        return None if parent == _NO_PARENT else parent

    @property
    def nullable(self) -> bool:
        return bool(self._get(_NULLABLE, 0))

    def _get(self, number: int, default: Any) -> Any:
        return next((value for key, value in self.members if key == number), default)

    def _with(self, number: int, value: int | bytes) -> StoredField:
        kept = [member for member in self.members if member[0] != number]
        given = [(number, value)] if value else []  # default values are omitted
        return replace(self, members=tuple(sorted([*kept, *given], key=lambda item: item[0])))

    def renamed(self, name: str) -> StoredField:
        return self._with(_NAME, name.encode())

    def shifted(self, by: int) -> StoredField:
        """The same field with ``by`` added to its id and parent id."""
        moved = self._with(_ID, self.id + by)
        return moved if self.parent is None else moved._with(_PARENT, self.parent + by)

    def numbered(self, like: StoredField) -> StoredField:
        """The same field with the id and the parent id of ``like``."""
        moved = self._with(_ID, like.id)
        return moved._with(_PARENT, _NO_PARENT if like.parent is None else like.parent)

    def made_nullable(self, nullable: bool) -> StoredField:
        return self._with(_NULLABLE, int(nullable))


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """All fields of a table, columns in order, each followed by its children."""

    metadata: str
    fields: tuple[StoredField, ...]

    @classmethod
    def of(cls, lance_schema: Any) -> FieldSchema:
        metadata, *fields = lance_schema.__reduce__()[1]
        return cls(metadata, tuple(StoredField(_decode(field)) for field in fields))

    @classmethod
    def of_column(cls, column: pa.Field) -> FieldSchema:
        """One column with its children, numbered from 0."""
        return cls.of(LanceSchema.from_pyarrow(pa.schema([column])))

    def to_lance(self) -> Any:
        return LanceSchema._from_protos(self.metadata, *(_encode(f.members) for f in self.fields))

    @property
    def last_id(self) -> int:
        return max((field.id for field in self.fields), default=-1)

    def columns(self) -> dict[str, tuple[StoredField, ...]]:
        """Every column by name, each with its children after it."""
        found: dict[str, list[StoredField]] = {}
        for field in self.fields:
            if field.parent is None:
                found[field.name] = [field]
            else:
                next(reversed(found.values())).append(field)
        return {name: tuple(fields) for name, fields in found.items()}


def _decode(message: bytes) -> tuple[_Member, ...]:
    members: list[_Member] = []
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        value, at = _read_varint(message, at)
        if kind == _BYTES:
            members.append((number, message[at : at + value]))
            at += value
        elif kind == _VARINT:
            members.append((number, value))
        else:
            raise ValueError(f"a field has a member {number} of the unknown kind {kind}")
    return tuple(members)


def _encode(members: Any) -> bytes:
    parts = []
    for number, value in members:
        if isinstance(value, bytes):
            parts += [_varint(number << 3 | _BYTES), _varint(len(value)), value]
        else:
            parts += [_varint(number << 3 | _VARINT), _varint(value)]
    return b"".join(parts)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
