"""Driving the program: as a process where that is the point, in this process where it is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.graphs import people_graph

from omnigraph.cli.main import run

SOURCE = Path(__file__).parents[2] / "src"
SECONDS_MAX = 120


@dataclass(frozen=True)
class Done:
    """A finished run of the program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Program = Callable[..., Done]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test may depend on the settings of whoever runs it."""
    home = tmp_path / "omnigraph home"
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    return home


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment that runs this very source, and compiles it in the first process only."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    cache = str(tmp_path_factory.mktemp("bytecode"))
    return {**kept, "PYTHONPATH": str(SOURCE), "PYTHONPYCACHEPREFIX": cache}


@pytest.fixture
def omnigraph(tmp_path: Path, own_home: Path, compiled: dict[str, str]) -> Program:
    """Run the real program in a process of its own."""

    def call(*arguments: str, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph.cli.main", *arguments],
            capture_output=True,
            cwd=tmp_path,
            env={**compiled, "OMNIGRAPH_HOME": str(own_home), **environment},
            encoding="utf-8",
            timeout=SECONDS_MAX,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def inline(capsys: pytest.CaptureFixture[str]) -> Program:
    """Run the same entry point here: for the many cases that end before the engine is needed."""

    def call(*arguments: str) -> Done:
        code = run(arguments)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with three commits and a branch. Tests must not change it."""
    where = tmp_path_factory.mktemp("cli") / "people graph"
    people_graph(where).branches.create("feature/x")
    return where
