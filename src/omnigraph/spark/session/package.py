"""The archive of this package for executors that do not have it: Python code, without its
dependencies."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidInput
from omnigraph.spark.session.installed import PACKAGE_ROOT

NAME: Final = "omnigraph"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def build_package(target: Path) -> int:
    """Write the archive; returns the number of its files. The same code gives the same bytes."""
    if target.suffix != ".zip":
        raise InvalidInput(
            f"{target} is no name of a package for executors",
            remedy="Name a file that ends in .zip: Python imports from such archives only.",
        )
    root = Path(PACKAGE_ROOT)
    files = sorted(
        path
        for path in (root / NAME).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    except OSError as problem:
        raise InvalidInput(f"{target} cannot be written: {problem.strerror}") from problem
    return len(files)
