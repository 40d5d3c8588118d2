"""Fingerprints of removed ids: what a version says about the entities it removed.

Whoever looks for the version that removed an entity skips those whose fingerprints do not contain
it. Two ids may share a fingerprint, so one that matches is looked at; and a version that removed
many keeps none, so it is looked at, too.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import pyarrow as pa

REMOVED_MAX: Final = 64
"""Fingerprints kept per version: they are part of history, which must stay small."""

Fingerprints = tuple[int, ...] | None
"""None: not known what was removed."""


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
    """The same from JSON."""
    return None if stored is None else tuple(stored)
