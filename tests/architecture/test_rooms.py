"""The room order of ARCHITECTURE.md, the public names, and what importing them costs."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph

ROOT = Path(__file__).parents[2]
HEAVY = {"lance", "numpy", "pandas", "pyarrow"}


def lint_imports(config: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"
    return subprocess.run(
        [sys.executable, "-c", program, "--config", str(config), "--no-cache"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_go_down_only() -> None:
    done = lint_imports(ROOT / ".importlinter")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_contracts_would_notice_an_import_that_goes_up(tmp_path: Path) -> None:
    """With two rooms exchanged the code as it is breaks the contract."""
    text = (ROOT / ".importlinter").read_text()
    exchanged = text.replace("    catalog\n    storage\n", "    storage\n    catalog\n")
    assert exchanged != text
    (tmp_path / "contracts").write_text(exchanged)

    done = lint_imports(tmp_path / "contracts")

    assert done.returncode != 0
    assert "omnigraph.catalog is not allowed to import omnigraph.storage" in done.stdout


def test_every_room_has_its_place_in_the_order() -> None:
    """``exhaustive`` does this for modules; here for the words of ARCHITECTURE.md."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:rooms"]["layers"].replace("|", " ").split()
    source = ROOT / "src" / "omnigraph"
    rooms = {path.stem for path in source.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert set(layers) == rooms - {"__init__", "__pycache__", "py"}
    order = ["cli", "graph", "history", "prepare", "engine", "transaction", "catalog", "storage"]
    assert [layer for layer in layers if layer in order] == order


def test_the_public_names_are_exactly_these() -> None:
    """Every name is listed once, with the module that it is loaded from."""
    loaded = {"__version__", "errors"}
    assert sorted(omnigraph.__all__) == sorted(loaded | omnigraph._MODULES.keys())
    assert {"Graph", "Settings", "errors", "init", "open"} <= set(omnigraph.__all__)
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None
    visible = {name for name in vars(omnigraph) if not name.startswith("_")}
    submodules = {
        name for name in visible if sys.modules.get(f"omnigraph.{name}") is getattr(omnigraph, name)
    }
    assert visible - submodules - set(omnigraph.__all__) <= {
        "Any",
        "TYPE_CHECKING",
        "import_module",
    }
    with pytest.raises(AttributeError, match="nothing_like_it"):
        getattr(omnigraph, "nothing_like_it")  # noqa: B009 - the name is the point


@pytest.mark.parametrize(
    "module",
    [
        "omnigraph",
        "omnigraph.errors",
        "omnigraph.lang.syntax",
        "omnigraph.cli.main",
    ],
)
def test_importing_it_loads_no_heavy_library(module: str) -> None:
    """Lance costs a second to load: the languages, ``--help`` and errors do without it."""
    assert _loaded_by(module) & HEAVY == set()


def _loaded_by(module: str) -> set[str]:
    program = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}
