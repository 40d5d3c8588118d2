"""Whether PySpark is installed, and the directory of this package for Spark's processes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from omnigraph.errors import SparkUnavailable

PACKAGE_ROOT: Final = str(Path(__file__).resolve().parents[3])


def is_available() -> bool:
    """Whether the Spark extra is installed."""
    return all(find_spec(name) is not None for name in ("pyspark", "pandas"))


def require_pyspark() -> None:
    if not is_available():
        raise SparkUnavailable(
            "PySpark is not installed", remedy="Install it: pip install 'omnigraph[spark]'."
        )
