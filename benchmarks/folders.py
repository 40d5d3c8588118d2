"""Where benchmarks keep what takes long to make.

``OMNIGRAPH_BENCH_DIR`` names a folder where graphs stay for the next run; otherwise they go away.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

DIRECTORY_ENVIRONMENT: Final = "OMNIGRAPH_BENCH_DIR"


@contextmanager
def bench_folder(name: str) -> Iterator[Path]:
    """A folder for graphs: one that stays when the environment says where."""
    kept = os.environ.get(DIRECTORY_ENVIRONMENT)
    if kept:
        yield Path(kept) / name
        return
    with tempfile.TemporaryDirectory() as where:
        yield Path(where) / name
