"""A real file system that is full or read-only, where this machine lets a test mount one."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(place: Path, *, size: str) -> Iterator[Path]:
    """Mount a small tmpfs at ``place``; skip the test, visibly, where that is not allowed."""
    place.mkdir(parents=True)
    if _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)) != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield place
    finally:
        assert _run("umount", "--lazy", str(place)) == 0


def remount_read_only(place: Path) -> None:
    assert _run("mount", "-o", "remount,ro", str(place)) == 0


def _run(*command: str) -> int:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return 127
