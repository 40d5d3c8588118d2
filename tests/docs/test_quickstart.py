"""The README's ten minutes work as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.generate import DOCS


def test_the_readme_works_as_written(tmp_path: Path) -> None:
    readme = (DOCS.parent / "README.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    files = {"pg": "people.pg", "json": "people.jsonl", "gq": "people.gq"}
    for kind, name in files.items():
        (tmp_path / name).write_text(next(text for found, text in blocks if found == kind))
    ran = 0
    for kind, text in blocks:
        if kind == "python":
            _run([sys.executable, "-c", text], tmp_path)
            ran += 1
        for line in text.splitlines():
            if kind == "" and line.startswith("omnigraph "):
                _run(["sh", "-c", line], tmp_path)
                ran += 1
    assert ran >= 9


def _run(command: list[str], where: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=where,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
