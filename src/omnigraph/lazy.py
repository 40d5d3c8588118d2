"""Modules, and names of a package, that are loaded when they are first asked for.

For packages whose commonest use needs a part of them only. Type checkers see the same names through
an import below ``TYPE_CHECKING``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: from names to the modules below it that have them."""

    def get(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return get


class Later(ModuleType):
    """A module that is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
