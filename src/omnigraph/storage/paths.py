"""Paths inside a graph's directory or prefix."""

from __future__ import annotations

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MASK = 0xFFFF_FFFF_FFFF_FFFF

RECOVERY_PREFIX = "__recovery"
STAGING_PREFIX = "_staging"
HISTORY_PREFIX = "__history"
RECOVERY_AUDIT_PATH = "_graph_commit_recoveries.lance"


def fnv1a_64(data: bytes) -> int:
    """The 64-bit FNV-1a hash."""
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def table_path(type_key: str, incarnation: str | None = None) -> str:
    """The directory of a type's table.

    The first incarnation of a name gets the hash of the name. A path is never used again, so the
    path of a later incarnation also depends on the id of the incarnation.
    """
    kind, _, name = type_key.partition(":")
    text = name if incarnation is None else f"{name}#{incarnation}"
    return f"{kind}s/{fnv1a_64(text.encode()):016x}"
