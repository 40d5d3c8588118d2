"""The environment of the child processes that tests start, kill and stop."""

from __future__ import annotations

import os
import sys
import tempfile


def child_environment(**more: str) -> dict[str, str]:
    """This process's environment and ``more``, for a child that runs the same code."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "RUST_LOG": "error",
        **more,
    }
    if environment.pop("PYTHONDONTWRITEBYTECODE", None):
        # Compiling everything anew is a third of a short life: keep it, but not with the source.
        cache = f"omnigraph-pycache-{os.getuid()}"
        environment["PYTHONPYCACHEPREFIX"] = os.path.join(tempfile.gettempdir(), cache)
    return environment
