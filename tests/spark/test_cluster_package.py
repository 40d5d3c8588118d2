"""A real cluster whose workers do not have the package, and a load that is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest
from tests.spark.random_loads import SCHEMA
from tests.support.spark_cluster import spark_cluster

import omnigraph
from omnigraph.settings import Settings
from omnigraph.spark.tasks import SparkTasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WAIT_S_MAX = 300.0  # a busy machine; nothing waits this long when it works
CLI = [sys.executable, "-c", "import sys; from omnigraph.cli.main import run; sys.exit(run())"]
CONF = (
    "spark.executor.memory=512m; spark.cores.max=2; spark.driver.host=127.0.0.1;"
    "spark.driver.bindAddress=127.0.0.1; spark.executorEnv.PYTHONPATH=/nonexistent"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    omnigraph.init(tmp_path / "g", SCHEMA)
    lines = [f'{{"type":"Person","data":{{"name":"p{n}"}}}}' for n in range(50)]
    (tmp_path / "people.jsonl").write_text("\n".join(lines))
    return tmp_path


def _python_without_the_package(folder: Path) -> Path:
    """An interpreter that has every dependency, but not this package."""
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    every = folder / "dependencies"
    every.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "omnigraph" not in entry.name and entry.suffix != ".pth":
            (every / entry.name).symlink_to(entry)
    (site,) = (folder / "bare").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(str(every))
    return folder / "bare" / "bin" / "python"


def _load(place: Path, **environment: str) -> subprocess.Popen[str]:
    arguments = ["load", "g", "--data", "people.jsonl", "--mode", "append"]
    return subprocess.Popen(
        [*CLI, *arguments, "--engine", "spark", "--json"],
        cwd=place,
        env={**os.environ, "OMNIGRAPH_SPARK_SERVER": "off", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_workers_without_the_package_get_it_from_the_archive(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = _python_without_the_package(place)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with spark_cluster(place / "cluster", workers=1) as cluster:
        environment = {
            "OMNIGRAPH_SPARK_MASTER": cluster.url,
            "OMNIGRAPH_SPARK_CONF": CONF,
            "PYSPARK_PYTHON": str(python),
        }
        out, said = _load(place, **environment).communicate(timeout=WAIT_S_MAX)
        assert "do not have the package omnigraph" in out + said
        assert "omnigraph spark package omnigraph.zip" in out + said
        archive = place / "omnigraph.zip"
        subprocess.run([*CLI, "spark", "package", str(archive)], check=True, capture_output=True)
        environment["OMNIGRAPH_SPARK_PACKAGE"] = str(archive)
        out, said = _load(place, **environment).communicate(timeout=WAIT_S_MAX)
        assert json.loads(out)["total_entities"] == 50, said


@pytest.mark.crash
def test_an_interrupted_load_ends_quietly_and_leaves_nothing(place: Path) -> None:
    flag = place / "flag"
    load = _load(place, OMNIGRAPH_FAILPOINTS=f"task.before_files=pause:{flag}")
    deadline = monotonic() + WAIT_S_MAX
    while not flag.exists():
        assert load.poll() is None
        assert monotonic() < deadline
        sleep(0.05)
    load.send_signal(signal.SIGINT)
    _, said = load.communicate(timeout=WAIT_S_MAX)
    assert load.returncode == 130, said
    assert "py4j" not in said
    assert "Traceback" not in said
    assert not list((place / "g" / "_staging").rglob("*.json"))
    assert omnigraph.open(place / "g").snapshot().pin("node:Person").rows == 0


def _square(number: int) -> int:
    return number * number


def test_the_job_group_of_the_caller_is_kept(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "what I do")
    try:
        assert SparkTasks(spark, Settings().spark.stall_s).run("squares", _square, [2, 3]) == [4, 9]
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.job.description") == "what I do"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
