"""Fingerprints (CRC-32) of the ids that a version removed, stored with the version.

A search for the version that removed an entity skips versions without its fingerprint. There are
false positives: two ids may share a fingerprint, and a version that removed many ids stores none,
so that it always matches.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import pyarrow as pa

REMOVED_MAX: Final = 64
"""A version that removed more ids stores no fingerprints, so that history stays small."""

Fingerprints = tuple[int, ...] | None
"""None: unknown, matches every id."""


def fingerprint(id: str) -> int:
    return crc32(id.encode())


def fingerprints(ids: pa.Array | pa.ChunkedArray | None) -> Fingerprints:
    """The fingerprints of these ids, unless they are too many or not known."""
    if ids is None or len(ids) > REMOVED_MAX:
        return None
    return tuple(sorted(fingerprint(id) for id in ids.to_pylist()))


def may_hold(removed: Fingerprints, id: str) -> bool:
    """Whether this id may be among those removed."""
    return removed is None or fingerprint(id) in removed


def read_fingerprints(stored: Any) -> Fingerprints:
    """Fingerprints as stored in JSON."""
    return None if stored is None else tuple(stored)
