"""Conditional requests and ranges of bytes, as RFC 9110 has them, for one strong entity tag."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers

_RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")
_TAG: Final = re.compile(r'\s*(W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*')


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A satisfiable range: from ``start`` to before ``end``."""

    start: int
    end: int


class UnsatisfiableRange(Exception):
    """A range that has no byte of the value."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__(start, end)
        self.start = start
        self.end = end


def matches_strongly(headers: Headers, etag: str | None) -> bool:
    """Whether ``If-Match`` holds; a malformed one does not."""
    given = headers.getlist("if-match")
    if not given:
        return True
    text = ", ".join(given)
    if text.strip() == "*":
        return etag is not None
    tags = _tags(text)
    return tags is not None and any(not weak and tag == etag for weak, tag in tags)


def is_unchanged(headers: Headers, etag: str) -> bool:
    """Whether ``If-None-Match`` names the value, so that it need not be sent."""
    given = headers.getlist("if-none-match")
    if not given:
        return False
    text = ", ".join(given)
    if text.strip() == "*":
        return True
    return any(tag == etag for _, tag in _tags(text) or ())


def wanted_range(headers: Headers, etag: str, size: int) -> ByteRange | None:
    """The one range of a request; None where all of the value is to be sent.

    Raises:
        UnsatisfiableRange: The range has no byte of the value.
    """
    given = headers.getlist("range")
    if len(given) != 1:
        return None
    conditions = headers.getlist("if-range")
    if conditions and conditions != [etag]:
        return None
    match = _RANGE.fullmatch(given[0].strip())
    if match is None:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        length = min(int(suffix), size)
        if not length:
            raise UnsatisfiableRange(size, size)
        return ByteRange(size - length, size)
    start = int(first)
    end = int(last) + 1 if last else max(size, start)
    if last and end <= start:
        return None  # first position behind the last one: malformed, so it is ignored
    if start >= size:
        raise UnsatisfiableRange(start, end)
    return ByteRange(start, min(end, size))


def _tags(text: str) -> list[tuple[bool, str]] | None:
    """A list of entity tags; None when it is malformed."""
    found, at = [], 0
    while True:
        match = _TAG.match(text, at)
        if match is None:
            return None
        found.append((match[1] is not None, match[2]))
        at = match.end()
        if at == len(text):
            return found
        if text[at] != ",":
            return None
        at += 1
