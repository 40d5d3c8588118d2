"""Finding a Java runtime, starting Spark, and choosing the engine of a load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.random_loads import SCHEMA

import omnigraph
from omnigraph.errors import InvalidInput
from omnigraph.ingest.load import LoadSpec
from omnigraph.settings import Settings
from omnigraph.spark import engine_choice
from omnigraph.spark.engine_choice import choose_engine
from omnigraph.spark.session import spark_session
from omnigraph.spark.session.java import find_java_home


def _java(home: Path, version: str) -> Path:
    """A fake Java of this version."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_a_java_home_that_is_new_enough_is_left_alone(tmp_path: Path) -> None:
    home = _java(tmp_path / "java", "17.0.2")
    settings = Settings.from_environment({"JAVA_HOME": str(home)})
    assert find_java_home(settings, path="") == str(home)


def test_the_java_of_the_path_is_used_when_the_named_one_is_too_old(tmp_path: Path) -> None:
    old, new = _java(tmp_path / "old", "1.8.0_392"), _java(tmp_path / "new", "21.0.1")
    settings = Settings.from_environment({"JAVA_HOME": str(old)})
    assert find_java_home(settings, path=str(new / "bin")) == str(new)


def test_without_any_java_the_bundled_one_is_used(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {"JAVA_HOME": str(tmp_path / "none"), "OMNIGRAPH_CACHE_DIR": str(tmp_path)}
    )
    home = find_java_home(settings, path="")
    assert home == str(tmp_path / "java")
    java = Path(home) / "bin" / "java"
    answer = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True
    )
    assert "version" in answer.stderr
    assert find_java_home(settings, path="") == home


@pytest.mark.spark
def test_the_command_line_loads_on_spark_on_a_machine_without_java(tmp_path: Path) -> None:
    """Without Java on the path; standard error has progress and nothing else."""
    omnigraph.init(tmp_path / "g", SCHEMA)
    data = tmp_path / "people.jsonl"
    data.write_text("\n".join(f'{{"type":"Person","data":{{"name":"p{n}"}}}}' for n in range(50)))
    tools = tmp_path / "bin"  # what Spark's scripts call, and no java
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "ps", "uname", "cat", "env", "nice", "chmod"):
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(found)
    environ = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environ |= {"PATH": str(tools), "OMNIGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    command = "from omnigraph.cli.main import run; run()"
    arguments = ["load", str(tmp_path / "g"), "--data", str(data), "--mode", "append"]
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments, "--engine", "spark", "--json"],
        capture_output=True,
        text=True,
        env=environ,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total_entities"] == 50
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [["omnigraph", "load"]]


@pytest.mark.parametrize(
    ("engine", "master", "expected"),
    [
        (None, None, "local"),
        ("auto", "spark://somewhere:7077", "spark"),
        ("local", "spark://somewhere:7077", "local"),
        ("spark", None, "spark"),
    ],
)
def test_the_engine_is_chosen_by_its_estimated_cost_unless_named(
    engine: str | None, master: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_choice, "input_bytes", lambda *_: 1 << 40)
    monkeypatch.setattr(spark_session, "_own", None)
    monkeypatch.setattr(spark_session, "_active", lambda: None)
    settings = Settings().with_master(master)
    choice = choose_engine(engine, LoadSpec(b"", "append"), settings)
    assert choice.engine == expected
    assert choice.reason


def test_the_settings_name_the_engine() -> None:
    settings = Settings.from_environment({"OMNIGRAPH_LOAD_ENGINE": "spark"})
    assert choose_engine(None, LoadSpec(b"", "append"), settings).engine == "spark"
    assert choose_engine("local", LoadSpec(b"", "append"), settings).engine == "local"
    with pytest.raises(InvalidInput, match="'fast' is not an engine"):
        choose_engine("fast", LoadSpec(b"", "append"), settings)
