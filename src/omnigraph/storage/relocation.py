"""Versions that name other places: what has to change in them when a graph is copied.

A physical branch finds the files that it shares by the absolute location of what it was forked
from, written into each of its versions. A copy of the files alone would read the original. Here the
location inside a version's file is rewritten; everything else stays as it is, byte for byte.

The file of a version ends with a protobuf message, its length before it, and a footer that says
where that length is. ``tests/guards/test_branches.py`` pins the layout to the Lance in use.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from omnigraph.errors import CorruptData
from omnigraph.storage.locations import Location
from omnigraph.storage.tables import PinnedTable

_FOOTER: Final = struct.Struct("<qHH4s")  # position of the message, format version, magic
_LENGTH: Final = struct.Struct("<I")
_MAGIC: Final = b"LANC"
_BASE_PATHS: Final = 18  # field of the message: the places that files are found at
_PATH: Final = 4  # field of such a place: where it is
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # wire types


def relocated(data: bytes, move: Callable[[str], str]) -> bytes:
    """The file of a version with every location that it names moved."""
    try:
        position, major, minor, magic = _FOOTER.unpack(data[-_FOOTER.size :])
        (length,) = _LENGTH.unpack_from(data, position)
        start = position + _LENGTH.size
        if magic != _MAGIC or start + length + _FOOTER.size != len(data):
            raise ValueError("not the file of a version")
        message = data[start : start + length]
        parts = [_moved(field, raw, move) for field, raw in _fields(message)]
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptData("a version of a table cannot be read: its file is damaged") from error
    new = b"".join(parts)
    footer = _FOOTER.pack(position, major, minor, magic)
    return data[:position] + _LENGTH.pack(len(new)) + new + footer


def outside_bases(table: PinnedTable, graph: Location) -> list[str]:
    """The places outside a graph that a version finds files at."""
    paths = [base.path for base in table.dataset.base_paths().values()]
    return sorted(path for path in paths if not path.startswith(f"{graph.uri}/"))


def _moved(field: int, raw: bytes, move: Callable[[str], str]) -> bytes:
    if field != _BASE_PATHS:
        return raw
    place = b"".join(
        _text(_PATH, move(_content(part).decode())) if number == _PATH else part
        for number, part in _fields(_content(raw))
    )
    return _key(_BASE_PATHS) + _varint(len(place)) + place


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message: their numbers, and their bytes with key and length."""
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
            raise ValueError("a field is cut off")
        yield key >> 3, message[start:at]


def _content(raw: bytes) -> bytes:
    """What is inside a field of bytes."""
    _, at = _read_varint(raw, 0)
    length, at = _read_varint(raw, at)
    return raw[at : at + length]


def _text(field: int, text: str) -> bytes:
    data = text.encode()
    return _key(field) + _varint(len(data)) + data


def _key(field: int) -> bytes:
    return _varint(field << 3 | _BYTES)


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
            raise ValueError("a number is too long")
