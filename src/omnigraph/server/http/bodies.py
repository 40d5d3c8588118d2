"""Reading the body of a request: bounded, decompressed, into memory or into a file.

The bound holds for the decompressed size, so that a small body cannot become a large one.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

import zstandard
from starlette.datastructures import Headers
from starlette.types import Receive

from omnigraph.errors import (
    BodyTimeout,
    InvalidInput,
    QueryCancelled,
    ResourceLimit,
    UnsupportedMediaType,
)

PIECE_BYTES: Final = 1 << 20
"""Decompressed bytes that are made at a time."""
ZSTD_WINDOW_MAX: Final = 1 << 27
"""128 MiB: what `zstd --long=27` needs; a larger window is memory that a client could ask for."""
SPOOL_BYTES: Final = 4 << 20
"""Bytes that are collected before a thread writes them to the file."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How large a body may be, what to call it in the refusal, and how slow."""

    bytes_max: int
    resource: str
    timeout_s: float

    def refuse(self, actual: int) -> None:
        """Raise when a body has more bytes than allowed."""
        if actual > self.bytes_max:
            raise ResourceLimit(
                self.resource,
                self.bytes_max,
                actual,
                remedy="Send a smaller body, or load files with `omnigraph load`.",
            )


class _Gzip:
    """Members of gzip, one after the other."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            self._begun = True
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
            except zlib.error as problem:
                raise InvalidInput(f"the body is not gzip: {problem}") from None
            data = self._member.unconsumed_tail or self._member.unused_data
            yield piece

    def close(self) -> None:
        if self._begun and not self._member.eof:
            raise InvalidInput("the gzip body is cut off", remedy="Send all of it.")


class _Zstandard:
    """Frames of zstd, one after the other."""

    def __init__(self) -> None:
        self._made: list[bytes] = []
        self._new_frame()
        self._begun = False

    def _new_frame(self) -> None:
        self._frame = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_MAX).decompressobj(
            write_size=PIECE_BYTES
        )

    def pieces(self, data: bytes) -> Iterator[bytes]:
        # In slices: one call expands all that it is given, and zstd makes 128 KiB of a few bytes.
        for at in range(0, len(data), 1024):
            rest = data[at : at + 1024]
            while rest:
                if self._frame.eof:
                    self._new_frame()
                self._begun = True
                try:
                    piece = self._frame.decompress(rest)
                except zstandard.ZstdError as problem:
                    raise InvalidInput(f"the body is not zstd: {problem}") from None
                rest = self._frame.unused_data if self._frame.eof else b""
                yield piece

    def close(self) -> None:
        if self._begun and not self._frame.eof:
            raise InvalidInput("the zstd body is cut off", remedy="Send all of it.")


_DECODERS: Final[dict[str, Callable[[], _Gzip | _Zstandard]]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "zstd": _Zstandard,
}


async def chunks(receive: Receive, headers: Headers, limits: BodyLimits) -> AsyncIterator[bytes]:
    """The decompressed body as it arrives."""
    declared = headers.get("content-length")
    if declared is not None and declared.isdigit():
        limits.refuse(int(declared))
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", *_DECODERS):
        raise UnsupportedMediaType(
            f"the content encoding {encoding[:40]!r} is not supported",
            remedy="Send the body as it is, or with gzip or zstd.",
        )
    decoder = _DECODERS[encoding]() if encoding in _DECODERS else None
    size = 0
    async for data in _received(receive, limits.timeout_s):
        for piece in (data,) if decoder is None else decoder.pieces(data):
            size += len(piece)
            limits.refuse(size)
            yield piece
    if decoder is not None:
        decoder.close()


async def _received(receive: Receive, timeout_s: float) -> AsyncIterator[bytes]:
    more = True
    while more:
        try:
            async with asyncio.timeout(timeout_s):
                message = await receive()
        except TimeoutError:
            raise BodyTimeout(f"no byte of the body came for {timeout_s:g} s") from None
        if message["type"] == "http.disconnect":
            raise QueryCancelled("the client went away before its body was complete")
        more = message.get("more_body", False)
        data = message.get("body", b"")
        if data:
            yield data


async def whole(receive: Receive, headers: Headers, limits: BodyLimits) -> bytes:
    """The body, in memory."""
    parts = [part async for part in chunks(receive, headers, limits)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


@contextmanager
def temporary_file(suffix: str) -> Iterator[str]:
    """A file for one body, readable by its owner only, which is removed afterwards."""
    handle, path = tempfile.mkstemp(prefix="omnigraph-body-", suffix=suffix)
    os.close(handle)
    try:
        yield path
    finally:
        os.unlink(path)


async def spool(
    receive: Receive,
    headers: Headers,
    limits: BodyLimits,
    path: str,
) -> int:
    """Write the body to a file; returns its size. Memory holds a few mebibytes of it."""
    size = 0
    loop = asyncio.get_running_loop()
    with open(path, "wb", buffering=0) as file:
        pending: list[bytes] = []
        held = 0
        async for part in chunks(receive, headers, limits):
            pending.append(part)
            held += len(part)
            if held >= SPOOL_BYTES:
                size += await loop.run_in_executor(None, _write, file, pending)
                pending, held = [], 0
        if pending:
            size += await loop.run_in_executor(None, _write, file, pending)
    return size


def _write(file: IO[bytes], parts: list[bytes]) -> int:
    data = memoryview(b"".join(parts))
    done = 0
    while done < len(data):
        done += file.write(data[done:])
    return done
