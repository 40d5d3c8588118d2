"""Identifiers: ULIDs, which sort by creation time and are unique without coordination.

Within one process they are strictly increasing, also inside one millisecond.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_PAIR_BYTES = np.frombuffer("".join(_PAIRS).encode(), dtype=np.uint16)
ULID_LENGTH = 26
_PAIR_SHIFTS = range(120, -1, -10)
_RANDOM_BITS = 80
_RUN_BITS = 40  # the last eight characters, the only ones that differ between consecutive ids
_lock = threading.Lock()
_last = 0


def new_ulid() -> str:
    """A fresh ULID: 48 bits of milliseconds, 80 random bits, 26 upper-case Crockford characters."""
    return encode_ulid(_reserve(1))


def new_ulids(count: int) -> pa.Array:
    """Fresh ULIDs in ascending order: consecutive numbers after a random start."""
    first = _reserve(count)
    return _spelled(first, (first & (1 << _RUN_BITS) - 1) + np.arange(count, dtype=np.int64))


def placed_ulids(operation_id: str, part: int, places: np.ndarray[Any, Any]) -> pa.Array:
    """One ULID per record of a part of an operation's input, given the positions of the records.

    The same operation, part and position always give the same id, with the time of the operation.
    Different parts and positions (below 2**40 each) give different ids.
    """
    run = (1 << _RUN_BITS) - 1
    seed = int.from_bytes(hashlib.sha256(operation_id.encode()).digest()[:10], "big")
    time = decode_ulid(operation_id) >> _RANDOM_BITS
    high = (time << _RUN_BITS) | ((seed >> _RUN_BITS) + part & run)
    return _spelled(high << _RUN_BITS, (places.astype(np.int64) + (seed & run)) & run)


def _spelled(first: int, low: np.ndarray[Any, Any]) -> pa.Array:
    """ULIDs that share all but their last eight characters, which spell ``low``."""
    count = len(low)
    pairs = np.empty((count, ULID_LENGTH // 2), dtype=np.uint16)
    pairs[:] = np.frombuffer(encode_ulid(first).encode(), dtype=np.uint16)
    for at, shift in enumerate(range(_RUN_BITS - 10, -1, -10), start=-(_RUN_BITS // 10)):
        pairs[:, at] = _PAIR_BYTES[(low >> shift) & 1023]
    offsets = np.arange(count + 1, dtype=np.int64) * ULID_LENGTH
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(pairs)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers).cast(pa.string())


def _reserve(count: int) -> int:
    """The first of ``count`` consecutive numbers that no other call of this process gets."""
    global _last
    value = (time.time_ns() // 1_000_000) << _RANDOM_BITS | int.from_bytes(os.urandom(10), "big")
    with _lock:
        # Ids of one millisecond, or made after the clock stepped back, still sort in order.
        value = _last + 1 if value <= _last else value
        if (value & (1 << _RUN_BITS) - 1) + count > 1 << _RUN_BITS:
            value = ((value >> _RUN_BITS) + 1) << _RUN_BITS  # only the low bits may differ
        _last = value + count - 1
    return value


def encode_ulid(value: int) -> str:
    """Spell a 128-bit number as a ULID."""
    return "".join([_PAIRS[value >> shift & 1023] for shift in _PAIR_SHIFTS])


def decode_ulid(text: str) -> int:
    """The 128-bit number that a ULID spells."""
    value = 0
    for character in text:
        value = value << 5 | _ALPHABET.index(character)
    return value


def ulid_milliseconds(text: str) -> int | None:
    """When a ULID was made, in milliseconds since 1970; None when the text is not one."""
    if len(text) != ULID_LENGTH or not set(text) <= set(_ALPHABET):
        return None
    return decode_ulid(text) >> _RANDOM_BITS


def _forget_last_after_fork() -> None:
    global _last, _lock
    _last, _lock = 0, threading.Lock()


os.register_at_fork(after_in_child=_forget_last_after_fork)
