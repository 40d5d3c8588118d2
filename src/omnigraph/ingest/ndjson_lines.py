"""Groups the lines of an NDJSON block by type, so that Arrow parses all lines of a type at once.

A line usually begins with the name of its type. The lines of a block are compared, eight bytes at
a time, with each distinct prefix that occurs. Lines with another layout (blanks around them) are
grouped one by one; lines without such a prefix are returned separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

HEAD: Final = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([^"\\\n]*)"')
HEADS_MAX: Final = 64
"""Prefixes that a block is compared with; with more of them the rest is grouped line by line."""

_WORD: Final = 8
_NEWLINE, _OPEN, _CLOSE = b"\n{}"


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Lines with the same prefix ``head``: their bytes, one record per line, and line numbers."""

    head: bytes
    data: Any
    numbers: np.ndarray[Any, Any]
    texts: Callable[[], list[bytes]]


def group_lines(block: bytes, first: int) -> tuple[list[LineGroup], list[tuple[bytes, int]]]:
    """The lines of a block by prefix, and the lines without one, with their line numbers."""
    data = np.zeros(len(block) + _WORD, dtype=np.uint8)  # room to read a word at the last byte
    data[: len(block)] = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data[: len(block)] == _NEWLINE)
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    plain = (data[starts] == _OPEN) & (data[ends - 1] == _CLOSE)
    groups, left = [], np.flatnonzero(plain)
    others = [np.flatnonzero(~plain)]
    for _ in range(HEADS_MAX):
        if not len(left):
            break
        start, end = int(starts[left[0]]), int(ends[left[0]])
        head = HEAD.match(block, start, end)
        if head is None:
            others.append(left[:1])
            left = left[1:]
            continue
        same = _begin_with(data, starts[left], ends[left], head[0])
        groups.append(_group(block, head[0], left[same], starts, ends, first))
        left = left[~same]
    others.append(left)
    rest = np.sort(np.concatenate(others)).tolist()
    lines = ((block[starts[at] : ends[at]], at + first) for at in rest)
    more, unknown = _one_by_one(lines)
    return groups + more, unknown


def _begin_with(data: Any, starts: Any, ends: Any, head: bytes) -> Any:
    """A mask of the lines that begin with these bytes."""
    words = np.ndarray((len(data) - _WORD + 1,), dtype="<u8", buffer=data, strides=(1,))
    same = ends - starts >= len(head)
    last = len(data) - _WORD
    for offset in (*range(0, len(head) - _WORD, _WORD), len(head) - _WORD):
        wanted = np.frombuffer(head, dtype="<u8", count=1, offset=offset)[0]
        same &= words[np.minimum(starts + offset, last)] == wanted
    return same


def _group(block: bytes, head: bytes, chosen: Any, starts: Any, ends: Any, first: int) -> LineGroup:
    def texts() -> list[bytes]:
        return [block[starts[at] : ends[at]] for at in chosen.tolist()]

    if len(chosen) == len(starts):
        return LineGroup(head, pa.py_buffer(block), chosen + first, texts)
    offsets = np.append(starts, len(block)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    lines = pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)
    return LineGroup(head, lines.take(pa.array(chosen)).buffers()[2], chosen + first, texts)


def _one_by_one(
    lines: Iterator[tuple[bytes, int]],
) -> tuple[list[LineGroup], list[tuple[bytes, int]]]:
    found: dict[bytes, tuple[list[bytes], list[int]]] = {}
    unknown = []
    for line, number in lines:
        text = line.strip(b" \t\r")
        if not text:
            continue
        head = HEAD.match(text) if text.endswith(b"}") else None
        if head is None:
            unknown.append((text, number))
            continue
        texts, numbers = found.setdefault(head[0], ([], []))
        texts.append(text)
        numbers.append(number)
    groups = [
        LineGroup(head, pa.py_buffer(b"\n".join(texts)), np.array(numbers), texts.copy)
        for head, (texts, numbers) in found.items()
    ]
    return groups, unknown
