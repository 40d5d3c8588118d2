"""The wheel holds the product only: modules below ``omnigraph``, the type marker, the metadata."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from tests.architecture.source_tree import texts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> set[PurePosixPath]:
    """What the wheel contains. `make setup` has put the build backend into uv's cache."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "uv", "build", "--wheel", "--quiet", "--out-dir", str(out)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {PurePosixPath(name) for name in archive.namelist()}


def test_every_module_of_the_source_tree_is_in_the_wheel(files: set[PurePosixPath]) -> None:
    modules = {str(path.relative_to("omnigraph")) for path in files if path.suffix == ".py"}
    assert modules == set(texts())


def test_nothing_else_is_in_the_wheel(files: set[PurePosixPath]) -> None:
    others = {path for path in files if path.suffix != ".py"}
    product = {path for path in others if path.parts[0] == "omnigraph"}
    metadata = {path for path in others if path.parts[0].endswith(".dist-info")}
    assert product == {PurePosixPath("omnigraph/py.typed")}
    assert {path.name for path in metadata} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "LICENSE",
    }
    assert others == product | metadata
