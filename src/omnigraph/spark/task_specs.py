"""How a task gets its specification, and the driver its result, at a cost that is the task's own.

A job's function and specifications travel in the closure while they are small together. Otherwise
the driver writes them as one object with an index, and a task reads the function, which is kept by
the process, and its own specification. Large results go the same way back. Credentials are never
written: storage settings stay in the closure, and what is written refers to them by number.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from omnigraph.bulk.scratch import Scratch
from omnigraph.model.ids import new_ulid
from omnigraph.settings import StorageSettings

CLOSURE_BYTES_MAX: Final = 32 << 10
"""Bytes of a function and all specifications that are sent to every task: less than a request to
a store costs."""

RESULT_BYTES_MAX: Final = 16 << 10
"""Bytes of a result that the driver collects; of a larger one it gets the name of an object."""

FUNCTIONS_KEPT: Final = 4
"""Functions that a worker process keeps: those of the jobs that run at the same time."""

_ENTRY: Final = 8


@dataclass(frozen=True, slots=True)
class InlineSpecs:
    """A function and all specifications, pickled one by one."""

    function: bytes
    specs: tuple[bytes, ...]
    settings: tuple[StorageSettings, ...]

    def call(self, number: int) -> Any:
        function = _load(self.function, self.settings)
        return function(_load(self.specs[number], self.settings))


@dataclass(frozen=True, slots=True)
class StoredSpecs:
    """A function and specifications in one object: index, function, specifications."""

    scratch: Scratch
    path: str
    function_start: int
    function_size: int
    settings: tuple[StorageSettings, ...]

    def call(self, number: int) -> Any:
        objects = self.scratch.objects
        entries = objects.get_range(self.path, _ENTRY * number, 2 * _ENTRY)
        start, end = np.frombuffer(entries, dtype="<u8").tolist()
        spec = objects.get_range(self.path, start, end - start)
        return _function(self)(_load(spec, self.settings))


@lru_cache(FUNCTIONS_KEPT)
def _function(stored: StoredSpecs) -> Callable[[Any], Any]:
    data = stored.scratch.objects.get_range(
        stored.path, stored.function_start, stored.function_size
    )
    found: Callable[[Any], Any] = _load(data, stored.settings)
    return found


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The object that holds the pickled result of a task."""

    path: str


def pack(
    function: Callable[[Any], Any], specs: Sequence[Any], scratch: Scratch | None
) -> InlineSpecs | StoredSpecs:
    """The function and the specifications of a job, as a small picklable value."""
    settings: dict[StorageSettings, int] = {}
    shared = _dump(function, settings)
    own = [_dump(spec, settings) for spec in specs]
    sizes = [len(item) for item in own]
    if scratch is None or len(shared) + sum(sizes) <= CLOSURE_BYTES_MAX:
        return InlineSpecs(shared, tuple(own), tuple(settings))
    header = _ENTRY * (len(own) + 1)
    starts = header + len(shared) + np.cumsum([0, *sizes], dtype="<u8")
    path = f"{scratch.prefix}/specs/{new_ulid()}"
    scratch.objects.put(path, b"".join([starts.astype("<u8").tobytes(), shared, *own]))
    return StoredSpecs(scratch, path, header, len(shared), tuple(settings))


def pack_result(result: bytes, scratch: Scratch | None) -> bytes:
    """A pickled result as it is sent to the driver."""
    if scratch is None or len(result) <= RESULT_BYTES_MAX:
        return result
    path = f"{scratch.prefix}/results/{new_ulid()}"
    scratch.objects.put(path, result)
    return pickle.dumps(StoredResult(path))


def unpack_result(data: bytes, scratch: Scratch | None) -> Any:
    """The result that a task packed."""
    found = pickle.loads(data)
    if isinstance(found, StoredResult):
        assert scratch is not None, "the tasks of the job had one"
        return pickle.loads(scratch.objects.get(found.path))
    return found


class _Pickler(pickle.Pickler):
    """Numbers storage settings instead of writing them."""

    def __init__(self, out: io.BytesIO, settings: dict[StorageSettings, int]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._settings = settings

    def persistent_id(self, obj: Any) -> int | None:
        if isinstance(obj, StorageSettings):
            return self._settings.setdefault(obj, len(self._settings))
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, settings: Sequence[StorageSettings]) -> None:
        super().__init__(io.BytesIO(data))
        self._settings = settings

    def persistent_load(self, pid: Any) -> StorageSettings:
        found: StorageSettings = self._settings[pid]
        return found


def _dump(value: Any, settings: dict[StorageSettings, int]) -> bytes:
    out = io.BytesIO()
    _Pickler(out, settings).dump(value)
    return out.getvalue()


def _load(data: bytes, settings: Sequence[StorageSettings]) -> Any:
    return _Unpickler(data, settings).load()
