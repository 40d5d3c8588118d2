"""The one variable that workers inherit: where prometheus-client shares their metrics.

Set, never read; prometheus-client reads it when a worker imports it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def shared_metrics() -> Iterator[None]:
    """A directory for the metrics of the workers that are started in the block."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-metrics-") as directory:
        os.environ[DIRECTORY] = directory
        yield
