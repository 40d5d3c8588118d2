"""Where this program keeps what it can make again: one directory of the user.

``OMNIGRAPH_CACHE_DIR``, else ``omnigraph`` below ``XDG_CACHE_HOME``, else below ``~/.cache``. An
``XDG_CACHE_HOME`` that is not absolute is ignored, as its specification says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

DIRECTORY_ENVIRONMENT: Final = "OMNIGRAPH_CACHE_DIR"


def cache_directory(environ: Mapping[str, str]) -> Path:
    """The directory; it need not exist."""
    given = environ.get(DIRECTORY_ENVIRONMENT)
    if given:
        return Path(given)
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "omnigraph"
