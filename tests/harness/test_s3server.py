"""The S3 test server: its counts, its injected faults, and its shutdown."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from tests.support.s3server import Request, S3Fault, S3Server, s3_server
from tests.support.stores import open_objects

from omnigraph.errors import OutcomeUnknown, PermissionDenied
from omnigraph.settings import Settings
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.store import ObjectStore

pytestmark = pytest.mark.s3


@pytest.fixture
def bucket(s3: S3Server) -> str:
    name = f"b{uuid.uuid4().hex}"
    s3.create_bucket(name)
    s3.reset()
    return name


@pytest.fixture
def store(s3: S3Server, bucket: str) -> ObjectStore:
    location = parse_location(f"s3://{bucket}/g")
    return open_objects(location, Settings.from_environment(s3.environment()).storage)


def test_requests_are_counted_by_class_and_prefix(
    s3: S3Server, bucket: str, store: ObjectStore
) -> None:
    store.put("ü x", b"1")
    store.get("ü x")
    store.exists("ü x")
    store.list("d")
    store.rename("ü x", "d/y")
    store.delete("d/y")
    assert s3.requests() == [
        Request("PUT", f"{bucket}/g/ü x", 200),
        Request("GET", f"{bucket}/g/ü x", 200),
        Request("HEAD", f"{bucket}/g/ü x", 200),
        Request("LIST", f"{bucket}/g/d/", 200),
        Request("COPY", f"{bucket}/g/d/y", 200),
        Request("DELETE_MANY", f"{bucket}/", 200),
        Request("DELETE_MANY", f"{bucket}/", 200),
    ]
    assert s3.counts(f"{bucket}/g/d") == {"LIST": 1, "COPY": 1}
    s3.reset()
    assert s3.counts() == {}


def test_lance_and_other_processes_are_counted_too(s3: S3Server, bucket: str) -> None:
    program = (
        "import lance, pyarrow, sys\n"
        "from omnigraph.settings import Settings\n"
        "from omnigraph.storage.locations import parse_location\n"
        "at = parse_location(sys.argv[1])\n"
        "table = pyarrow.table({'a': [1]})\n"
        "options = at.storage_options(Settings.from_environment().storage)\n"
        "lance.write_dataset(table, at.uri, storage_options=options)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, f"s3://{bucket}/t able"],
        env={**os.environ, **s3.environment()},
        check=True,
    )
    assert s3.counts(f"{bucket}/t able/data/") == {"PUT": 1}
    assert s3.counts(f"{bucket}/t able/_versions/")["PUT"] == 1


def test_a_status_is_answered_instead_of_the_effect(
    s3: S3Server, bucket: str, store: ObjectStore
) -> None:
    s3.inject(S3Fault("PUT", f"{bucket}/g/a*", status=403, skip=1))
    store.put("a1", b"")
    store.put("b", b"")
    with pytest.raises(PermissionDenied):
        store.put("a2", b"")
    store.put("a3", b"")
    assert [info.path for info in store.list()] == ["a1", "a3", "b"]


def test_an_answer_can_be_dropped_after_the_effect(s3: S3Server, store: ObjectStore) -> None:
    s3.inject(
        S3Fault("PUT", action="drop", when="after", times=None),
        S3Fault("GET", status=503, times=None),
    )
    with pytest.raises(OutcomeUnknown):
        store.put("a", b"arrived")
    assert {request.status for request in s3.requests() if request.kind == "PUT"} == {0}
    s3.clear_faults()
    assert store.get("a") == b"arrived"


def test_a_late_answer_is_an_answer(s3: S3Server, store: ObjectStore) -> None:
    s3.inject(S3Fault("PUT", action="delay", delay_ms=1))
    store.put("a", b"1")
    assert store.get("a") == b"1"
    assert s3.counts() == {"PUT": 1, "GET": 1}


def test_the_server_goes_away_with_its_parent() -> None:
    program = (
        "from tests.support.s3server import s3_server\n"
        "import os, psutil\n"
        "with s3_server():\n"
        "    print(psutil.Process().children()[0].pid, flush=True)\n"
        "    os._exit(1)\n"
    )
    parent = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    orphan = int(parent.stdout)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(orphan).wait(30)
    assert not psutil.pid_exists(orphan)


def test_the_server_listens_on_loopback_only_and_stops() -> None:
    with s3_server() as server:
        (child,) = (
            child
            for child in psutil.Process().children()
            if any(c.laddr.port == server.port for c in child.net_connections())
        )
        listening = [c for c in child.net_connections() if c.status == psutil.CONN_LISTEN]
        assert [(c.laddr.ip, c.laddr.port) for c in listening] == [("127.0.0.1", server.port)]
    assert not child.is_running()


def test_a_directory_is_loaded_without_requests(
    s3: S3Server, bucket: str, store: ObjectStore, tmp_path: Path
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"deep")
    (tmp_path / "y").write_bytes(b"")

    s3.load(tmp_path, f"s3://{bucket}/g")

    assert s3.counts() == {}
    assert [info.path for info in store.list()] == ["a/b/x", "y"]
    assert store.get("a/b/x") == b"deep"
