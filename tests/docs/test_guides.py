"""The examples of the guides work as written, from top to bottom."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.generate import DOCS
from tests.support.original_graphs import unpacked

ELSEWHERE = {"mcp", "serving", "spark"}
"""Run by tests/mcp, tests/server/test_guide.py and tests/spark/test_guide.py."""
GUIDES = [path for path in sorted((DOCS / "guides").glob("*.md")) if path.stem not in ELSEWHERE]
FILES = {"pg": "people.pg", "json": "people.jsonl", "gq": "people.gq"}
_BLOCK = re.compile(r'^```(\w*)(?: title="([\w./-]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_works_as_written(
    guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = 0
    if guide.stem == "rust-original":
        monkeypatch.setenv("OMNIGRAPH_UPGRADE_WATCH_SECONDS", "0")
        unpacked("museum", tmp_path).rename(tmp_path / "old.omni")
    for kind, title, text in _BLOCK.findall(guide.read_text()):
        if title:
            (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / title).write_text(text)
        elif kind in FILES:
            (tmp_path / FILES[kind]).write_text(text)
        elif kind == "python":
            _run([sys.executable, "-c", text], tmp_path)
            ran += 1
        elif kind == "":
            for line in text.splitlines():
                words = shlex.split(line)
                assert words[0] == "omnigraph"
                _run([sys.executable, "-m", "omnigraph.cli.main", *words[1:]], tmp_path)
                ran += 1
    assert ran, "a guide without an example"


def _run(command: list[str], where: Path) -> None:
    done = subprocess.run(
        command,
        cwd=where,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
