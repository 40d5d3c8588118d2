"""A quicker start of commands that open a graph.

Only for processes that are ours: pyarrow remembers what it found.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _NoPandas(MetaPathFinder):
    """Lets nobody import pandas while it is in place."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ImportError("pandas is left alone here", name=fullname)


def leave_pandas_alone() -> None:
    """Let pyarrow look for pandas now and find none: importing it doubles the time of a command.

    It looks once, when it first makes a value; what needs pandas later still gets it.
    """
    import pyarrow

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pyarrow.scalar(0)
    finally:
        sys.meta_path.remove(finder)
