"""The README's ten minutes work as written, and a second time without changing anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.generate import DOCS

import omnigraph

EXISTS = ("omnigraph init ", "python")
"""Steps that say, the second time, that something exists already: the graph, and the branch."""
MERGE = "omnigraph branch merge "
"""Also deletes the branch, so that what comes before it is repeated before it."""


@pytest.fixture
def steps(tmp_path: Path) -> list[tuple[str, list[str]]]:
    """The commands of the README, in order, with their files beside them."""
    readme = (DOCS.parent / "README.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    files = {"pg": "people.pg", "json": "people.jsonl", "gq": "people.gq"}
    for kind, name in files.items():
        (tmp_path / name).write_text(next(text for found, text in blocks if found == kind))
    found: list[tuple[str, list[str]]] = []
    for kind, text in blocks:
        if kind == "python":
            found.append(("python", [sys.executable, "-c", text]))
        for line in text.splitlines():
            if kind == "" and line.startswith("omnigraph "):
                found.append((line, ["sh", "-c", line]))
    assert len(found) >= 9
    return found


def test_the_readme_works_as_written_and_again(
    steps: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    merge = next(at for at, (line, _) in enumerate(steps) if line.startswith(MERGE))
    for _, command in steps[:merge]:
        _succeed(command, tmp_path)
    before = _state(tmp_path)
    for line, command in steps[:merge]:  # the same reader starts again
        if line.startswith(EXISTS):
            done = _run(command, tmp_path)
            assert done.returncode != 0
            assert "exists" in done.stderr
        else:
            done = _succeed(command, tmp_path)
            assert ("nothing changed" in done.stdout) == line.startswith("omnigraph load ")
        assert _state(tmp_path) == before
    for _, command in steps[merge:]:
        _succeed(command, tmp_path)
    after = _state(tmp_path)
    (load,) = (command for line, command in steps if line.startswith("omnigraph load "))
    _succeed(load, tmp_path)
    assert _state(tmp_path) == after


def _state(where: Path) -> dict[str, tuple[int, bytes]]:
    """How many commits each branch has, and everything in it."""
    graph = omnigraph.open(where / "people")
    return {
        name: (len(graph.history.commits(name)), b"".join(graph.export(branch=name)))
        for name in graph.branches.list()
    }


def _succeed(command: list[str], where: Path) -> subprocess.CompletedProcess[str]:
    done = _run(command, where)
    assert done.returncode == 0, done.stderr
    return done


def _run(command: list[str], where: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=where,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
