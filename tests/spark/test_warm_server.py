"""The warm server: its file, its life cycle, and bulk commands over Spark Connect."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.guide_examples import ROOT, SCHEMA, run_section

import omnigraph
from omnigraph.settings import Settings
from omnigraph.spark.session import warm_server as server
from omnigraph.spark.session.installed import PACKAGE_ROOT
from omnigraph.spark.session.warm_server import Server
from omnigraph.transaction.ownership import Owner, this_process


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A separate cache directory, so that a running server of the user is not touched."""
    place = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_CACHE_DIR", str(place))
        yield place
        server.stop(settings())


def settings() -> Settings:
    """Those of the environment, which names the cache of these tests."""
    return Settings.from_environment()


def _omnigraph(place: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "omnigraph.cli.main", *arguments],
        cwd=place,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "OMNIGRAPH_SPARK_SERVER": "",
            **environ,
        },
        capture_output=True,
        text=True,
    )


def _described(owner: Owner, port: int, version: str = omnigraph.__version__) -> Server:
    return Server(owner, port, "secret", version, PACKAGE_ROOT, 0.0, 60.0)


def test_the_file_of_a_dead_server_is_ignored(cache: Path) -> None:
    assert server.running(settings()) is None
    here, gone = this_process(), Owner(this_process().host, 2**22 + 1, "1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
        server.publish(settings(), _described(here, port))
        found = server.running(settings())
        assert found is not None
        assert "secret" not in json.dumps(found.to_json())
        assert (cache / "spark" / "server.json").stat().st_mode & 0o777 == 0o600
        server.publish(settings(), _described(gone, port))
        assert server.running(settings()) is None
        server.publish(settings(), _described(here, port, version="0.0.1"))
        assert server.running(settings()) is None
    server.publish(settings(), _described(here, port))  # nobody listens there any more
    assert server.running(settings()) is None
    (cache / "spark" / "server.json").write_text("{")
    assert server.running(settings()) is None
    assert server.stop(settings()) is False
    assert list((cache / "spark").iterdir()) == []


def test_the_file_of_another_process_is_not_withdrawn(cache: Path) -> None:
    server.publish(settings(), _described(Owner(this_process().host, 2**22 + 1, "1"), 1))
    server.withdraw(settings())
    assert (cache / "spark" / "server.json").exists()
    server.publish(settings(), _described(this_process(), 1))
    server.withdraw(settings())
    assert not (cache / "spark" / "server.json").exists()


@pytest.mark.spark
def test_bulk_commands_use_the_server_and_everything_works_over_connect(
    cache: Path, tmp_path: Path
) -> None:
    graph = omnigraph.init(tmp_path / "people", SCHEMA)
    for name in ("connect", "warm"):
        line = json.dumps({"type": "Person", "data": {"name": name}})
        (tmp_path / f"{name}.jsonl").write_text(line)
    started = _omnigraph(tmp_path, "spark", "start", "--idle", "10", "--json")
    assert json.loads(started.stdout)["started"] is True, started.stderr
    found = server.running(settings())
    assert found is not None
    swap = {"sc://host:15002": found.url}
    broken = {"PYSPARK_SUBMIT_ARGS": "--no-such-flag"}  # no session can be started with this
    shown = run_section("Over Spark Connect", tmp_path, swap, **broken)
    assert "loaded 1 entities" in shown[0].stdout
    done = _connect_job(tmp_path, found.url)
    assert done == {
        "frame": [["delete", "a"], ["insert", "b"], ["update", "c"]],
        "components": 3,
        "exported": {"node:Person": 4},
        "steps": True,
        "failure": "spark_failure",
        "violations": 1,
        "stream": "not_available",
    }
    warm = run_section("A warm Spark server", tmp_path, {}, OMNIGRAPH_SPARK_SERVER="auto", **broken)
    assert "is running already" in warm[0].stdout
    assert server.running(settings()) is None
    assert graph.entity("node:Person", "warm")["name"] == "warm"
    assert not list((tmp_path / "people" / "_staging").rglob("*.json"))
    nobody = _omnigraph(tmp_path, "spark", "status")
    assert nobody.stdout == "not running\n"


def _connect_job(place: Path, url: str) -> object:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", str(place), url],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.spark
def test_an_idle_server_stops(cache: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph.spark.session.warm_server_process", "0.5"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.wait(timeout=server.START_POLL.deadline_s) == 0
    assert list((cache / "spark").iterdir()) == []
