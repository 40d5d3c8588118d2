"""Edits the protobuf message of a Lance version file.

The file ends with the length of the message, the message and a footer with the position of the
length. Members are kept as raw bytes; only changed ones are encoded again.
``tests/guards/test_branches.py`` pins the layout to the Lance in use.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from omnigraph.errors import CorruptData

_FOOTER: Final = struct.Struct("<qHH4s")  # position of the message, format version, magic
_LENGTH: Final = struct.Struct("<I")
_MAGIC: Final = b"LANC"
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # wire types

Member = tuple[int, bytes]
"""The number of a member of a message, and its bytes with key and length."""


def edited(data: bytes, change: Callable[[Iterator[Member]], Iterable[bytes]]) -> bytes:
    """The version file with changed members in its message; bytes before the message stay."""
    try:
        position, major, minor, magic = _FOOTER.unpack(data[-_FOOTER.size :])
        (length,) = _LENGTH.unpack_from(data, position)
        start = position + _LENGTH.size
        if magic != _MAGIC or start + length + _FOOTER.size != len(data):
            raise ValueError("not a version file")
        new = b"".join(change(members(data[start : start + length])))
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptData("a version of a table cannot be read: its file is damaged") from error
    footer = _FOOTER.pack(position, major, minor, magic)
    return data[:position] + _LENGTH.pack(len(new)) + new + footer


def members(message: bytes) -> Iterator[Member]:
    """The members of a message in their order."""
    at = 0
    while at < len(message):
        start = at
        key, at = _read_varint(message, at)
        wire = key & 7
        if wire == _VARINT:
            _, at = _read_varint(message, at)
        elif wire == _BYTES:
            length, at = _read_varint(message, at)
            at += length
        elif wire in (_EIGHT, _FOUR):
            at += 8 if wire == _EIGHT else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at > len(message):
            raise ValueError("a member is truncated")
        yield key >> 3, message[start:at]


def content(raw: bytes) -> bytes:
    """The content of a length-delimited member."""
    _, at = _read_varint(raw, 0)
    length, at = _read_varint(raw, at)
    return raw[at : at + length]


def number(raw: bytes) -> int:
    """The value of a varint member."""
    _, at = _read_varint(raw, 0)
    return _read_varint(raw, at)[0]


def of_bytes(member: int, data: bytes) -> bytes:
    return _varint(member << 3 | _BYTES) + _varint(len(data)) + data


def of_number(member: int, value: int) -> bytes:
    return _varint(member << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint is too long")
