"""The Lance session of this process."""

from __future__ import annotations

import threading
from typing import Any

from lance.dataset import Session

INDEX_CACHE_BYTES = 256 << 20
METADATA_CACHE_BYTES = 256 << 20

_session: Any = None
_session_lock = threading.Lock()


def lance_session() -> Any:
    """One bounded cache for every table of every graph."""
    global _session
    with _session_lock:
        if _session is None:
            _session = Session(
                index_cache_size_bytes=INDEX_CACHE_BYTES,
                metadata_cache_size_bytes=METADATA_CACHE_BYTES,
            )
        return _session
