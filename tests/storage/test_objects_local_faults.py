"""Local directories that are read-only, full, or lack required features (O-3, O-4, F-10)."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.storage.small_disk import mounted, remount_read_only
from tests.support.stores import open_objects

import omnigraph
from omnigraph.errors import (
    ObjectNotFound,
    PermissionDenied,
    StorageFailure,
    StorageFull,
    UnsupportedLocation,
)
from omnigraph.settings import Durability
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects import local_files
from omnigraph.storage.objects.store import ObjectStore


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_objects(parse_location(tmp_path / "graph"))


def run_unprivileged(code: str, *arguments: str) -> dict[str, str]:
    """Run code in a child that is not root; it fills ``result``, which comes back."""
    program = """
        import json, os, resource, sys
        import obstore
        from omnigraph.errors import OmnigraphError
        from omnigraph.storage.objects import obstore_store as obstore_objects
        from omnigraph.storage.locations import parse_location
        from tests.support.stores import open_objects
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        result = {}
        def outcome(call):
            try:
                return repr(call())
            except OmnigraphError as error:
                return error.code
    """
    source = f"{textwrap.dedent(program)}\n{textwrap.dedent(code)}\nprint(json.dumps(result))"
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory every user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


class TestPermissions:
    """A refusal is never read as "does not exist"."""

    CALLS = """
        store = open_objects(parse_location(sys.argv[1]))
        result = {
            "get": outcome(lambda: store.get("d/a")),
            "exists": outcome(lambda: store.exists("d/a")),
            "list": outcome(lambda: store.list("d")),
            "put": outcome(lambda: store.put("d/b", b"")),
            "create": outcome(lambda: store.put_if_absent("d/b", b"")),
            "replace": outcome(lambda: store.replace("d/a", b"", "tag")),
            "delete": outcome(lambda: store.delete("d/a")),
            "rename": outcome(lambda: store.rename("d/a", "d/b")),
        }
    """

    def test_a_directory_that_may_only_be_read(self, public_directory: Path) -> None:
        open_objects(parse_location(public_directory)).put("d/a", b"kept")
        for directory in (public_directory, public_directory / "d"):
            directory.chmod(0o555)
        result = run_unprivileged(self.CALLS, str(public_directory))
        assert result.pop("get") == "b'kept'"
        assert result.pop("exists") == "True"
        assert "d/a" in result.pop("list")
        assert result == dict.fromkeys(result, "permission_denied")
        assert (public_directory / "d" / "a").read_bytes() == b"kept"

    def test_a_directory_that_may_not_even_be_read(self, public_directory: Path) -> None:
        open_objects(parse_location(public_directory)).put("d/a", b"secret")
        public_directory.joinpath("d").chmod(0)
        public_directory.chmod(0o555)
        result = run_unprivileged(self.CALLS, str(public_directory))
        assert result == dict.fromkeys(result, "permission_denied")

    def test_an_object_that_may_not_be_read(self, public_directory: Path) -> None:
        open_objects(parse_location(public_directory)).put("d/a", b"secret")
        public_directory.joinpath("d", "a").chmod(0)
        result = run_unprivileged(self.CALLS, str(public_directory))
        assert result["get"] == "permission_denied"

    def test_a_read_only_file_system(self, tmp_path: Path) -> None:
        with mounted(tmp_path / "disk", size="256k") as disk:
            store = open_objects(parse_location(disk / "graph"))
            store.put("a", b"kept")
            remount_read_only(disk)
            with pytest.raises(PermissionDenied) as caught:
                store.put("a", b"new")
            assert "read and write access" in caught.value.remedy
            with pytest.raises(PermissionDenied):
                store.delete("a")
            assert store.get("a") == b"kept"
            assert [info.path for info in store.list()] == ["a"]


@pytest.mark.parametrize("durability", ["process", "fsync"])
class TestFullDisk:
    """Nothing half written, the old content stays, and the same store works again afterwards."""

    def test_on_a_small_file_system(self, tmp_path: Path, durability: Durability) -> None:
        with mounted(tmp_path / "disk", size="256k") as disk:
            store = open_objects(parse_location(disk / "graph"), durability=durability)
            store.put("a", b"old")
            for call in (
                lambda: store.put("a", b"x" * 1_000_000),
                lambda: store.put_if_absent("b", b"x" * 1_000_000),
                lambda: store.replace("a", b"x" * 1_000_000, store.get_tagged("a")[1]),
            ):
                with pytest.raises(StorageFull):
                    call()
            assert [(info.path, info.size) for info in store.list()] == [("a", 3)]
            assert store.get("a") == b"old"
            store.put_if_absent("b", b"x" * 100_000)
            assert store.get("b") == b"x" * 100_000

    def test_under_a_file_size_limit(self, public_directory: Path, durability: Durability) -> None:
        public_directory.chmod(0o777)
        result = run_unprivileged(
            """
            store = open_objects(parse_location(sys.argv[1]), durability=sys.argv[2])
            store.put("a", b"old")
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
            result = {
                "put": outcome(lambda: store.put("a", b"x" * 100_000)),
                "create": outcome(lambda: store.put_if_absent("b", b"x" * 100_000)),
                "list": repr([info.path for info in store.list()]),
                "get": outcome(lambda: store.get("a")),
                "small": outcome(lambda: store.put("c", b"x")),
            }
            """,
            str(public_directory / "graph"),
            durability,
        )
        assert result == {
            "put": "storage_full",
            "create": "storage_full",
            "list": "['a']",
            "get": "b'old'",
            "small": "None",
        }


class TestUnsuitableFileSystems:
    """O-4: refused before anything is written, with a message that says what to do."""

    @pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
    def test_no_exclusive_create(
        self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(UnsupportedLocation, match="exclusively") as caught:
            store.put("a", b"")
        assert "S3" in caught.value.remedy
        assert os.listdir(tmp_path / "graph") == []

    def test_create_that_is_not_exclusive(
        self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "link", lambda *_: None)
        with pytest.raises(UnsupportedLocation, match="exclusively"):
            store.ensure_writable()

    def test_no_locks(self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(local_files.fcntl, "flock", refuse)
        with pytest.raises(UnsupportedLocation, match="lock"):
            store.put("a", b"")

    def test_another_failure_of_the_probe_is_not_called_unsuitable(
        self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "link", fail)
        with pytest.raises(StorageFailure) as caught:
            store.put("a", b"")
        assert caught.value.code == "storage_failure"

    def test_the_probe_runs_once_and_leaves_nothing(
        self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        store.ensure_writable()
        assert os.listdir(tmp_path / "graph") == [local_files.LOCK_NAME]
        monkeypatch.setattr(os, "link", None)
        store.put("a", b"one")
        assert store.get("a") == b"one"


class TestOpeningAGraph:
    """O-4: what cannot keep the promises is refused at open, and not by the first write."""

    @pytest.fixture
    def uri(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        uri = str(tmp_path / "g")
        omnigraph.init(uri, "node Person { name: String @key }")
        monkeypatch.setattr(local_files, "_probed", set())  # as in a process of its own
        return uri

    @pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
    def test_O_4_a_filesystem_without_exclusive_create_is_refused_at_open(
        self, uri: str, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(UnsupportedLocation, match="exclusively"):
            omnigraph.open(uri)
        assert omnigraph.open(uri, read_only=True).branches.list() == ["main"]

    def test_O_4_so_is_one_without_locks(self, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(local_files.fcntl, "flock", refuse)
        with pytest.raises(UnsupportedLocation, match="lock"):
            omnigraph.open(uri)

    @pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
    def test_O_4_a_place_that_may_not_be_written_to_can_still_be_opened(
        self, uri: str, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        """Whoever only reads needs no more; the first write says what is wrong."""

        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", refuse)
        graph = omnigraph.open(uri)
        assert graph.branches.list() == ["main"]
        with pytest.raises(StorageFailure), graph.write() as w:
            w.insert("Person", {"name": "ana"})

    def test_O_4_a_reader_leaves_nothing(self, uri: str, tmp_path: Path) -> None:
        before = sorted(os.listdir(tmp_path / "g"))
        omnigraph.open(uri, read_only=True).branches.list()
        assert sorted(os.listdir(tmp_path / "g")) == before
        assert local_files._probed == set()


class TestThingsInTheWay:
    def test_a_file_where_the_graph_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "graph").write_text("a file")
        store = open_objects(parse_location(tmp_path / "graph"))
        assert not store.exists("a")
        assert store.list() == []
        for call in (lambda: store.put("a", b""), lambda: store.put_if_absent("a/b", b"")):
            with pytest.raises(UnsupportedLocation):
                call()
        assert (tmp_path / "graph").read_text() == "a file"

    def test_a_file_where_a_directory_should_be(self, store: ObjectStore) -> None:
        store.put("a", b"kept")
        with pytest.raises(UnsupportedLocation, match="file is where a directory"):
            store.put("a/b", b"")
        with pytest.raises(ObjectNotFound):
            store.get("a/b")
        store.delete("a/b")
        assert store.get("a") == b"kept"

    def test_a_directory_with_objects_where_an_object_should_be(self, store: ObjectStore) -> None:
        store.put("a/b", b"kept")
        for call in (
            lambda: store.put("a", b""),
            lambda: store.put_if_absent("a", b""),
            lambda: store.rename("a/b", "a"),
        ):
            with pytest.raises(UnsupportedLocation):
                call()
        assert [info.path for info in store.list()] == ["a/b"]

    def test_files_that_a_dead_writer_left_are_no_objects(
        self, store: ObjectStore, tmp_path: Path
    ) -> None:
        store.put("d/a", b"one")
        for name in ("a#1", "a#27", "b#1"):
            (tmp_path / "graph" / "d" / name).write_bytes(b"half")
        assert [info.path for info in store.list()] == ["d/a"]
        store.put("d/a", b"two")
        store.put_if_absent("d/b", b"one")
        assert store.get("d/a") == b"two"


def test_fsync_reaches_the_file_and_the_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    real = os.fsync

    def record(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    store = open_objects(parse_location(tmp_path / "graph"), durability="fsync")
    store.ensure_writable()
    monkeypatch.setattr(os, "fsync", record)
    store.put_if_absent("x/y/a", b"one")
    names = [os.path.relpath(name, tmp_path) for name in synced]
    assert names[0].startswith("graph/x/y/.put-")
    assert names[1:] == ["graph/x/y", "graph/x", "graph"]
    synced.clear()
    store.rename("x/y/a", "x/b")
    store.delete("x/b")
    names = [os.path.relpath(name, tmp_path) for name in synced]
    assert names == ["graph/x", "graph/x/y", "graph/x"]


def test_a_holder_of_the_lock_that_was_stopped_does_not_stop_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_objects(parse_location(tmp_path))
    store.put("a.json", b"1")
    monkeypatch.setattr(local_files, "LOCK_POLL", replace(local_files.LOCK_POLL, deadline_s=0.05))
    with local_files.locked(str(tmp_path)):
        with pytest.raises(StorageFailure):
            store.put("a.json", b"2")
        assert store.get("a.json") == b"1"
    store.put("a.json", b"3")
    assert store.get("a.json") == b"3"
