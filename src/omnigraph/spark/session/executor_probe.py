"""What an executor has installed. Sent as code, so it imports the standard library only."""

from __future__ import annotations

import platform
import socket
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

MODULES = {"omnigraph": "omnigraph", "pylance": "lance", "pyarrow": "pyarrow", "numpy": "numpy"}
"""The modules that tasks import, by the name of their package."""


def probe(_: int) -> dict[str, str]:
    """The host, the version of Python, and the versions of the packages that are there."""
    found = {"host": socket.gethostname(), "python": platform.python_version()}
    for package, module in MODULES.items():
        if find_spec(module) is not None:
            try:
                found[package] = version(package)
            except PackageNotFoundError:  # an archive has no metadata
                found[package] = ""
    return found
