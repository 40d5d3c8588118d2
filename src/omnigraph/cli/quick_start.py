"""A quicker start of commands that open a graph.

Half of a short command's time is the import of numpy, pyarrow and Lance, and much of that makes
what a command never looks at: documentation, types for type checkers, methods of dataclasses, a
Python function for each of three hundred functions of Arrow. Here those parts are left out, or made
when they are first asked for. What was left out of an import can be imported as usual afterwards.

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

import pyarrow as pa
import pyarrow._compute as core
import pyarrow.dataset
import pyarrow.fs

from omnigraph.cli.late_dataclasses import completed_later
from omnigraph.lazy import Later

_LEFT_ALONE: Final = frozenset(
    {"pandas", "dateutil", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs"}
)
"""What pyarrow does without where it is missing. Objects are read by Lance itself."""
_NO_CERTIFICATES: Final = SimpleNamespace(cafile=None, capath=None)
"""For the file systems that are left out."""
_LATER: Final = ("ast", "pickle", "platform", "socket", "sqlite3")
"""What libraries import and hardly ever use."""
_NUMPY_WITHOUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "inspect": {"cleandoc": lambda text: text, "signature": lambda function: None},
    "numpy._core._add_newdocs": {},
    "numpy._core._add_newdocs_scalars": {},
    "numpy._typing": {"NDArray": list},
}
_ARROW_WITHOUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "ssl": {"get_default_verify_paths": lambda: _NO_CERTIFICATES},
    "pyarrow.vendored.docscrape": {"NumpyDocString": lambda text: {"Parameters": []}},
}
_OTHER_NAMES: Final = {"and_": "and", "or_": "or", "utf8_zfill": "utf8_zero_fill"}
"""What Arrow calls functions that ``pyarrow.compute`` calls otherwise."""


def start_quickly() -> None:
    """Import numpy, pyarrow and Lance without what takes long and is not needed.

    pyarrow looks for pandas and dateutil once, when it first makes a value, and importing pandas
    doubles the time of a command. Tables become data frames all the same; to make an array of a
    Series, pyarrow does not know one when it sees it.
    """
    for name in _LATER:
        import_later(name)
    with _one_thread_of_blas(), _stand_ins(_NUMPY_WITHOUT):
        import numpy as np  # noqa: F401
    with _left_alone(), _stand_ins(_ARROW_WITHOUT):
        pa.scalar(0)
        _import_compute()
    with completed_later():
        import lance  # noqa: F401


def import_later(name: str) -> None:
    """Let a module seem imported; it is when something of it is used."""
    sys.modules.setdefault(name, Later(name))


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
    """Let other modules find these instead of what they import."""
    before = {name: sys.modules.get(name) for name in modules}
    for name, attributes in modules.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(attributes)
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module


def _import_compute() -> None:
    """Import ``pyarrow.compute`` so that it makes its functions when they are asked for."""
    if "pyarrow.compute" in sys.modules:
        return
    registry = core.function_registry
    core.function_registry = lambda: SimpleNamespace(list_functions=_none_yet)
    try:
        import pyarrow.compute as compute
    finally:
        core.function_registry = registry
    compute.function_registry = registry
    for name in ("utf8_zero_fill", "utf8_zfill"):
        delattr(compute, name)

    def made(name: str) -> Any:
        found = _callable(registry(), _OTHER_NAMES.get(name, name))
        if found is None:
            raise AttributeError(f"module 'pyarrow.compute' has no attribute {name!r}")
        wrapped = compute._wrap_function(name, found)
        setattr(compute, name, wrapped)
        return wrapped

    compute.__getattr__ = made


def _none_yet() -> tuple[str, ...]:
    """No functions, but the one that ``pyarrow.compute`` gives a second name at import."""
    vars(sys.modules["pyarrow.compute"])["utf8_zero_fill"] = None
    return ()


def _callable(registry: Any, name: str) -> Any:
    """A function of Arrow by its name, unless it works within others only."""
    if name not in registry.list_functions():
        return None
    found = registry.get_function(name)
    inner = found.kind == "hash_aggregate" or (found.kind, found.arity) == ("scalar_aggregate", 0)
    return None if inner else found
