"""Groups the lines of an NDJSON block by type, so that Arrow parses all lines of a type at once.

A line usually begins with the name of its type. The lines are compared, eight bytes at a time,
with each distinct prefix that occurs. Lines with another layout (blanks around them) are grouped
one by one; lines without such a prefix are returned separately.
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
_NEWLINE, _SPACE, _OPEN, _CLOSE = b"\n {}"


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Lines with the same prefix ``head``: their bytes, one record per line, and line numbers."""

    head: bytes
    data: Any
    numbers: np.ndarray[Any, Any]
    texts: Callable[[], list[bytes]]


class LineBlock:
    """A block of whole lines, with the positions of its lines and quotes."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.data = np.zeros(len(block) + _WORD, dtype=np.uint8)  # room for a word at the last byte
        self.data[: len(block)] = np.frombuffer(block, dtype=np.uint8)
        self.words = np.ndarray((len(block) + 1,), dtype="<u8", buffer=self.data, strides=(1,))
        text = self.data[: len(block)]
        ends = np.flatnonzero(text == _NEWLINE)
        if len(block) and not block.endswith(b"\n"):
            ends = np.append(ends, len(block))
        self.ends = ends
        self.starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)[: len(ends)]

    def is_plain(self) -> bool:
        """Whether there is no escape, and no control character but the ends of lines."""
        if b"\\" in self.block:
            return False
        newlines = len(self.ends) - (not self.block.endswith(b"\n"))
        return int(np.count_nonzero(self.data[: len(self.block)] < _SPACE)) == newlines

    def same(self, at: np.ndarray[Any, Any], text: bytes) -> np.ndarray[Any, Any] | bool:
        """A mask of the positions where a text stands; all of them are within the block."""
        if not text:
            return True
        if len(text) < _WORD:
            wanted = int.from_bytes(text, "little")
            shift = np.uint64(8 * (_WORD - len(text)))
            return np.asarray(self.words[at] << shift == np.uint64(wanted) << shift)
        found: np.ndarray[Any, Any] | bool = True
        for offset in (*range(0, len(text) - _WORD, _WORD), len(text) - _WORD):
            word = int.from_bytes(text[offset : offset + _WORD], "little")
            begin = at if not offset else np.minimum(at + offset, len(self.block))
            found = found & (self.words[begin] == np.uint64(word))
        return found


def group_lines(
    lines: LineBlock, chosen: np.ndarray[Any, Any], first: int
) -> tuple[list[LineGroup], list[tuple[bytes, int]]]:
    """The chosen lines of a block by prefix, and those without one, with their line numbers."""
    block, data, starts, ends = lines.block, lines.data, lines.starts, lines.ends
    plain = (data[starts[chosen]] == _OPEN) & (data[ends[chosen] - 1] == _CLOSE)
    groups, left = [], chosen[plain]
    others = [chosen[~plain]]
    for _ in range(HEADS_MAX):
        if not len(left):
            break
        start, end = int(starts[left[0]]), int(ends[left[0]])
        head = HEAD.match(block, start, end)
        if head is None:
            others.append(left[:1])
            left = left[1:]
            continue
        same = lines.same(starts[left], head[0]) & (ends[left] - starts[left] >= len(head[0]))
        groups.append(_group(lines, head[0], left[same], first))
        left = left[~same]
    others.append(left)
    rest = np.sort(np.concatenate(others)).tolist()
    texts = ((block[starts[at] : ends[at]], at + first) for at in rest)
    more, unknown = _one_by_one(texts)
    return groups + more, unknown


def _group(lines: LineBlock, head: bytes, chosen: Any, first: int) -> LineGroup:
    block, starts, ends = lines.block, lines.starts, lines.ends

    def texts() -> list[bytes]:
        return [block[starts[at] : ends[at]] for at in chosen.tolist()]

    if len(chosen) == len(starts):
        return LineGroup(head, pa.py_buffer(block), chosen + first, texts)
    offsets = np.append(starts, len(block)).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    every = pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)
    return LineGroup(head, every.take(pa.array(chosen)).buffers()[2], chosen + first, texts)


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
