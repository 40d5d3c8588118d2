"""A quicker start of commands that only read.

Lance imports a part of pyarrow that tries to import pandas when it is installed, which doubles the
start of a command. For the length of that one import pandas looks as if it were not there. Only
for processes that are ours and hand no data frames around: pyarrow remembers what it found.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType


class _NotNow(importlib.abc.Loader):
    """Finds pandas, as Lance wants to see, and refuses to load it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == "pandas" else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError("pandas is not needed here")


def import_lance_without_pandas() -> None:
    """Import Lance now, without what only data frames need."""
    if "lance" in sys.modules or "pandas" in sys.modules:
        return
    finder = _NotNow()
    sys.meta_path.insert(0, finder)
    try:
        import lance  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
