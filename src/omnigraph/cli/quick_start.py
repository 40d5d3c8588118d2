"""A quicker start of commands that open a graph.

Half of a short command's time is the import of numpy, pyarrow and Lance, and much of that makes
what a command never looks at: documentation, types for type checkers, a Python function for each of
three hundred functions of Arrow. Here those parts are left out, or made when they are first asked
for. What was left out of an import can be imported as usual afterwards.

Only for processes that are ours: libraries remember what they found. It must never change what a
library computes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Final

_LEFT_ALONE: Final = frozenset(
    {"pandas", "dateutil", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs"}
)
"""What pyarrow does without where it is missing. Objects are read by Lance itself."""
_NO_CERTIFICATES: Final = SimpleNamespace(cafile=None, capath=None)
"""For the file systems that are left out."""
_NUMPY_WITHOUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "numpy._core._add_newdocs": {},
    "numpy._core._add_newdocs_scalars": {},
    "numpy._typing": {"NDArray": list},
}
_ARROW_WITHOUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "ssl": {"get_default_verify_paths": lambda: _NO_CERTIFICATES},
    "pyarrow.vendored.docscrape": {"NumpyDocString": lambda text: {"Parameters": []}},
}
_MADE_AT_IMPORT: Final = ("utf8_zero_fill",)
"""Functions of Arrow that ``pyarrow.compute`` itself asks for."""


def start_quickly() -> None:
    """Import numpy and pyarrow without what takes long and is not needed.

    pyarrow looks for pandas and dateutil once, when it first makes a value, and importing pandas
    doubles the time of a command; what needs them later still gets them.
    """
    with _one_thread_of_blas(), _stand_ins(_NUMPY_WITHOUT):
        import numpy as np  # noqa: F401
    import pyarrow as pa

    with _left_alone(), _stand_ins(_ARROW_WITHOUT):
        import pyarrow.fs

        pa.scalar(0)
        _import_compute()
        import pyarrow.dataset


@contextmanager
def _one_thread_of_blas() -> Iterator[None]:
    """numpy's linear algebra starts threads when it is imported, and they wait at full speed."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


class _Refusing:
    """Lets nobody import some modules while it is in place."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in _LEFT_ALONE:
            raise ImportError(f"{fullname} is left alone here", name=fullname)


@contextmanager
def _left_alone() -> Iterator[None]:
    finder = _Refusing()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def _stand_ins(modules: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Let other modules find these instead of what they import, unless it is imported already."""
    placed = [name for name in modules if name not in sys.modules]
    for name in placed:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(modules[name])
    try:
        yield
    finally:
        for name in placed:
            del sys.modules[name]


def _import_compute() -> None:
    """Import ``pyarrow.compute`` so that it makes its functions when they are asked for."""
    if "pyarrow.compute" in sys.modules:
        return
    import pyarrow._compute as core

    registry = core.function_registry
    few = SimpleNamespace(
        list_functions=lambda: _MADE_AT_IMPORT, get_function=registry().get_function
    )
    core.function_registry = lambda: few
    try:
        import pyarrow.compute as compute
    finally:
        core.function_registry = registry
    compute.function_registry = registry

    def made(name: str) -> Any:
        found = _callable(registry(), name.rstrip("_") if name in ("and_", "or_") else name)
        if found is None:
            raise AttributeError(f"module 'pyarrow.compute' has no attribute {name!r}")
        wrapped = compute._wrap_function(name, found)
        setattr(compute, name, wrapped)
        return wrapped

    compute.__getattr__ = made


def _callable(registry: Any, name: str) -> Any:
    """A function of Arrow by its name, unless it works within others only."""
    if name not in registry.list_functions():
        return None
    found = registry.get_function(name)
    inner = found.kind == "hash_aggregate" or (found.kind, found.arity) == ("scalar_aggregate", 0)
    return None if inner else found
