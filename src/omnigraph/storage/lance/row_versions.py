"""The creation and update versions of rows: their columns, and reading them from metadata."""

from __future__ import annotations

import json
from typing import Any, Final

CREATED: Final = "_row_created_at_version"
WRITTEN: Final = "_row_last_updated_at_version"
_RUN = _SPAN = 0x0A  # field 1, a message
_VERSION: Final = 0x10  # field 2, a number
_MORE: Final = 0x80


def only_writer(fragment: Any) -> int | None:
    """The version that last wrote all rows of a fragment, or None when there may be several.

    Lance returns these versions in scans only. The metadata of a fragment holds them as a protobuf
    message: a list of runs, each a span of rows and the version that wrote them.
    """
    meta = fragment.last_updated_at_version_meta
    stored = None if meta is None else json.loads(meta.json()).get("inline")
    if not stored or stored[0] != _RUN:
        return None
    size, at = _number(stored, 1)
    if at + size != len(stored) or stored[at] != _SPAN:
        return None
    size, at = _number(stored, at + 1)
    at += size
    if stored[at : at + 1] != [_VERSION]:
        return None
    version, at = _number(stored, at + 1)
    return version if at == len(stored) else None


def _number(data: list[int], at: int) -> tuple[int, int]:
    """A varint, and the position after it."""
    value = shift = 0
    while data[at] & _MORE:
        value |= (data[at] ^ _MORE) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1
