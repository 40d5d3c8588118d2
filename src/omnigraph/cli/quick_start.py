"""A quicker start of commands that open a graph.

Only for processes that are ours: pyarrow remembers what it found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_UNUSED_FILE_SYSTEMS: Final = frozenset(
    f"pyarrow._{name}" for name in ("azurefs", "gcsfs", "hdfs", "s3fs")
)
"""Parts of pyarrow that Lance makes it load and nobody asks: objects are read by Lance itself."""


class _Refusing:
    """Lets nobody import some modules while it is in place."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in self._names:
            raise ImportError(f"{fullname} is left alone here", name=fullname)


@contextmanager
def _left_alone(names: frozenset[str]) -> Iterator[None]:
    finder = _Refusing(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def start_quickly() -> None:
    """Load pyarrow without what takes long and is not needed.

    It looks for pandas once, when it first makes a value, and importing pandas doubles the time of
    a command; what needs pandas later still gets it.
    """
    import pyarrow

    with _left_alone(frozenset({"pandas"})):
        pyarrow.scalar(0)
    with _left_alone(_UNUSED_FILE_SYSTEMS):
        import pyarrow.fs
