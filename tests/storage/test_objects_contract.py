"""The contract of the object adapter (O-1 to O-4), the same tests on every kind of store."""

from __future__ import annotations

import os
import pickle
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.storage.racing import claim, flat, in_processes, in_threads, increment
from tests.support.stores import open_objects

from omnigraph.errors import InvalidInput, ObjectChanged, ObjectExists, ObjectNotFound
from omnigraph.settings import Settings
from omnigraph.storage.locations import Location, parse_location
from omnigraph.storage.objects.store import PATH_BYTES_MAX, ObjectStore

KINDS = ["local", "file-uri", "fsync", "memory", pytest.param("s3", marks=pytest.mark.s3)]
SHARED_KINDS = ["local", "fsync", pytest.param("s3", marks=pytest.mark.s3)]

AWKWARD = [
    "with space",
    "ünïcode/日本語.json",
    "percent%20sign",
    "100%",
    "hash#tag",
    "a+b&c=d",
    "star*?[x]",
    "dots..in..name",
    ".hidden",
    "trailing.",
    "quote'\"",
    "n" * 240,
]


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> ObjectStore:
    """An empty store at a place with a space and a letter beyond ASCII in its name."""
    if kind == "s3":
        s3 = request.getfixturevalue("s3")
        bucket = s3.create_bucket("contract")
        location = parse_location(f"{bucket}/{uuid.uuid4().hex}/a gräph")
        return open_objects(location, Settings.from_environment(s3.environment()).storage)
    if kind == "memory":
        return open_objects(parse_location(f"memory://{uuid.uuid4().hex}"))
    path = tmp_path / "a gräph"
    if kind == "file-uri":
        return open_objects(parse_location(f"file://{quote(str(path))}"))
    return open_objects(parse_location(path), durability="fsync" if kind == "fsync" else "process")


def paths(store: ObjectStore, prefix: str = "") -> list[str]:
    return [info.path for info in store.list(prefix)]


every_kind = pytest.mark.parametrize("kind", KINDS, indirect=True)
every_shared_kind = pytest.mark.parametrize("kind", SHARED_KINDS, indirect=True)


@every_kind
class TestO1OneContract:
    """O-1: what is written can be read, on every store, under exactly its name."""

    def test_a_put_object_reads_back(self, store: ObjectStore) -> None:
        store.put("a/b.json", b"one")
        assert store.get("a/b.json") == b"one"

    def test_a_put_overwrites(self, store: ObjectStore) -> None:
        store.put("a", b"a longer first content")
        store.put("a", b"two")
        assert store.get("a") == b"two"

    def test_a_range_is_the_bytes_asked_for(self, store: ObjectStore) -> None:
        store.put("r", b"0123456789")
        assert store.get_range("r", 3, 4) == b"3456"
        assert store.get_range("r", 8, 100) == b"89"
        assert store.get_range("r", 5, 0) == b""
        assert store.size("r") == 10

    def test_an_empty_object_is_an_object(self, store: ObjectStore) -> None:
        store.put("empty", b"")
        assert store.get("empty") == b""
        assert store.exists("empty")
        assert [info.size for info in store.list()] == [0]

    @pytest.mark.parametrize("name", AWKWARD)
    def test_an_awkward_name_survives_every_call(self, store: ObjectStore, name: str) -> None:
        store.put_if_absent(f"d/{name}", b"one")
        data, tag = store.get_tagged(f"d/{name}")
        store.replace(f"d/{name}", data + b"!", tag)
        assert paths(store, "d") == [f"d/{name}"]
        store.rename(f"d/{name}", f"e f/{name}")
        assert store.get(f"e f/{name}") == b"one!"
        store.delete(f"e f/{name}")
        assert paths(store) == []

    @pytest.mark.parametrize(
        "path",
        [
            *["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/./b", "a\\b"],
            *["nul\0", "line\nbreak", "a#1", "a#1/b", "\udcff", "n" * 241],
            "/".join(["segment"] * (PATH_BYTES_MAX // 8 + 1)),
        ],
    )
    def test_a_path_that_not_every_store_can_hold_is_refused(
        self, store: ObjectStore, path: str
    ) -> None:
        for call in (
            lambda: store.put(path, b""),
            lambda: store.put_if_absent(path, b""),
            lambda: store.get(path),
            lambda: store.exists(path),
            lambda: store.delete(path),
            lambda: store.replace(path, b"", "tag"),
            lambda: store.rename("a", path),
            lambda: store.rename(path, "a"),
        ):
            with pytest.raises(InvalidInput, match="not a valid object path"):
                call()
        assert paths(store) == []

    def test_a_store_travels_by_pickle(self, store: ObjectStore) -> None:
        store.put("a", b"one")
        copy = pickle.loads(pickle.dumps(store))
        assert copy.get("a") == b"one"
        assert copy.location == store.location


@every_kind
class TestO2WholeObjects:
    """O-2: nobody sees part of an object, and exactly one claimant wins."""

    def test_the_second_claimant_is_told_and_changes_nothing(self, store: ObjectStore) -> None:
        store.put_if_absent("claim", b"first")
        with pytest.raises(ObjectExists):
            store.put_if_absent("claim", b"second")
        assert store.get("claim") == b"first"

    def test_a_claim_can_be_made_again_after_a_delete(self, store: ObjectStore) -> None:
        store.put_if_absent("claim", b"first")
        store.delete("claim")
        store.put_if_absent("claim", b"second")
        assert store.get("claim") == b"second"

    def test_one_thread_of_eight_wins_every_claim(self, kind: str, store: ObjectStore) -> None:
        rounds = 10 if kind == "s3" else 50
        winners = in_threads(claim, store, 8, rounds)
        assert flat(winners) == list(range(rounds))
        for thread, won in enumerate(winners):
            for number in won:
                assert store.get(f"claims/{number}") == b"thread %d" % thread * 5000

    def test_a_reader_never_sees_part_of_an_object(self, kind: str, store: ObjectStore) -> None:
        contents = [bytes([65 + n]) * (200_000 + n * 7) for n in range(4)]
        rounds = 10 if kind == "s3" else 60
        store.put("o", contents[0])
        done = threading.Event()

        def watch() -> set[bytes]:
            seen = {store.get("o")}
            while not done.is_set():
                seen.add(store.get("o"))
            return seen

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(watch) for _ in range(2)]
            try:
                for number in range(rounds):
                    store.put("o", contents[number % 4])
            finally:
                done.set()
            seen = set().union(*(reader.result() for reader in readers))
        assert seen <= set(contents)

    def test_a_claimed_object_is_whole_when_it_appears(self, store: ObjectStore) -> None:
        content = b"x" * 3_000_000
        absent = threading.Event()

        def first_sight() -> bytes:
            while True:
                try:
                    return store.get("o")
                except ObjectNotFound:
                    absent.set()

        with ThreadPoolExecutor(1) as pool:
            reader = pool.submit(first_sight)
            assert absent.wait(30)
            store.put_if_absent("o", content)
            assert reader.result() == content


@every_shared_kind
class TestO2BetweenProcesses:
    def test_one_process_of_four_wins_every_claim(self, kind: str, store: ObjectStore) -> None:
        rounds = 8 if kind == "s3" else 40
        winners = in_processes(claim, store, 4, rounds)
        assert flat(winners) == list(range(rounds))
        for process, won in enumerate(winners):
            for number in won:
                assert store.get(f"claims/{number}") == b"process %d" % process * 5000

    def test_no_process_loses_an_increment(self, kind: str, store: ObjectStore) -> None:
        rounds = 4 if kind == "s3" else 40
        store.put("counter", b"0")
        seen = in_processes(increment, store, 4, rounds)
        assert flat(seen) == list(range(4 * rounds))
        assert store.get("counter") == b"%d" % (4 * rounds)


@every_kind
class TestO3OnlyObjects:
    """O-3: listings, deletes, renames, conditional replace and typed absence."""

    def test_a_missing_object_is_a_typed_not_found(self, store: ObjectStore) -> None:
        store.put("other", b"")
        for call in (store.get, store.get_tagged):
            with pytest.raises(ObjectNotFound):
                call("missing")
        with pytest.raises(ObjectNotFound):
            store.get_range("missing", 0, 1)
        with pytest.raises(ObjectNotFound):
            store.size("missing")
        assert not store.exists("missing")

    def test_nothing_exists_in_a_place_that_was_never_written(self, store: ObjectStore) -> None:
        assert paths(store) == []
        assert not store.exists("a")
        with pytest.raises(ObjectNotFound):
            store.get("a")
        store.delete("a")
        store.delete_prefix("a")
        with pytest.raises(ObjectChanged):
            store.replace("a", b"", "tag")
        with pytest.raises(ObjectNotFound):
            store.rename("a", "b")

    def test_a_listing_is_complete_and_sorted(self, store: ObjectStore) -> None:
        names = [f"{d}/{n}" for d in ("b", "a", "a b") for n in ("z", "a", "10", "9")]
        for name in names:
            store.put(name, name.encode())
        assert paths(store) == sorted(names)
        assert [info.size for info in store.list()] == [len(n) for n in sorted(names)]

    def test_a_prefix_means_whole_segments(self, store: ObjectStore) -> None:
        for name in ("a/b/c", "a/bc/d", "a/b.json", "ab"):
            store.put(name, b"")
        assert paths(store, "a/b") == ["a/b/c"]
        assert paths(store, "a") == ["a/b.json", "a/b/c", "a/bc/d"]
        assert paths(store, "a/b.json") == []
        assert paths(store, "a/b.json/x") == []
        assert paths(store, "none") == []

    def test_a_listing_says_when_an_object_was_written(self, store: ObjectStore) -> None:
        before = datetime.now(UTC) - timedelta(seconds=2)
        store.put("a", b"")
        (info,) = store.list()
        assert before <= info.modified <= datetime.now(UTC) + timedelta(seconds=2)

    def test_a_listing_during_writes_shows_only_finished_objects(self, store: ObjectStore) -> None:
        expected = {f"d/{number}" for number in range(40)}
        with ThreadPoolExecutor(1) as pool:
            writer = pool.submit(lambda: [store.put(n, b"x" * 50_000) for n in sorted(expected)])
            while not writer.done():
                for info in store.list("d"):
                    assert info.path in expected
                    assert info.size == 50_000
            writer.result()
        assert set(paths(store)) == expected

    def test_a_directory_is_not_an_object(self, store: ObjectStore) -> None:
        store.put("a/b", b"")
        assert not store.exists("a")
        with pytest.raises(ObjectNotFound):
            store.get("a")
        store.delete("a")
        assert paths(store) == ["a/b"]

    def test_an_emptied_directory_is_not_in_the_way(self, store: ObjectStore) -> None:
        store.put("a/b/c", b"")
        store.delete("a/b/c")
        store.put_if_absent("a", b"an object now")
        assert paths(store) == ["a"]

    def test_delete_is_idempotent(self, store: ObjectStore) -> None:
        store.put("a", b"")
        store.delete("a")
        store.delete("a")
        store.delete("never/was")
        assert not store.exists("a")

    def test_delete_prefix_takes_whole_segments_and_is_idempotent(self, store: ObjectStore) -> None:
        for name in ("a/b/c", "a/b/d/e", "a/bc", "b"):
            store.put(name, b"")
        store.delete_prefix("a/b")
        store.delete_prefix("a/b")
        assert paths(store) == ["a/bc", "b"]

    def test_rename_moves_and_overwrites(self, store: ObjectStore) -> None:
        store.put("a", b"new")
        store.put("d/b", b"old")
        store.rename("a", "d/b")
        assert store.get("d/b") == b"new"
        assert paths(store) == ["d/b"]

    def test_rename_of_a_missing_object_is_a_not_found(self, store: ObjectStore) -> None:
        store.put("b", b"kept")
        with pytest.raises(ObjectNotFound):
            store.rename("a", "b")
        assert store.get("b") == b"kept"

    def test_rename_onto_itself_keeps_the_object(self, store: ObjectStore) -> None:
        store.put("a", b"kept")
        store.rename("a", "a")
        assert store.get("a") == b"kept"

    def test_replace_with_the_current_tag_wins(self, store: ObjectStore) -> None:
        store.put("a", b"one")
        data, tag = store.get_tagged("a")
        assert data == b"one"
        store.replace("a", b"two", tag)
        assert store.get("a") == b"two"

    def test_replace_with_an_old_tag_is_loud_and_changes_nothing(self, store: ObjectStore) -> None:
        store.put("a", b"one")
        _, tag = store.get_tagged("a")
        store.put("a", b"two")
        with pytest.raises(ObjectChanged):
            store.replace("a", b"three", tag)
        assert store.get("a") == b"two"

    def test_replace_of_a_deleted_object_is_loud(self, store: ObjectStore) -> None:
        store.put("a", b"one")
        _, tag = store.get_tagged("a")
        store.delete("a")
        with pytest.raises(ObjectChanged):
            store.replace("a", b"two", tag)
        assert not store.exists("a")

    def test_no_thread_loses_an_increment(self, kind: str, store: ObjectStore) -> None:
        rounds = 3 if kind == "s3" else 25
        store.put("counter", b"0")
        seen = in_threads(increment, store, 4, rounds)
        assert flat(seen) == list(range(4 * rounds))


class TestO4LocalPaths:
    """O-4: relative and dotted paths, and what opening may touch."""

    def test_a_relative_dotted_path_is_the_absolute_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "sub dir").mkdir()
        monkeypatch.chdir(tmp_path / "sub dir")
        store = open_objects(parse_location("./../graph/./x"))
        store.put("a", b"one")
        monkeypatch.chdir("/")
        assert store.get("a") == b"one"
        assert (tmp_path / "graph" / "x" / "a").read_bytes() == b"one"

    def test_reading_creates_nothing(self, tmp_path: Path) -> None:
        store = open_objects(Location("file", "", str(tmp_path / "none")))
        assert not store.exists("a")
        assert store.list() == []
        store.delete("a")
        store.delete_prefix("a")
        assert os.listdir(tmp_path) == []

    def test_a_store_survives_the_removal_of_its_directory(self, tmp_path: Path) -> None:
        store = open_objects(parse_location(tmp_path / "graph"))
        store.put("a", b"one")
        store.delete_prefix("")
        for entry in (tmp_path / "graph").iterdir():
            entry.unlink()
        (tmp_path / "graph").rmdir()
        store.put("a", b"two")
        assert store.get("a") == b"two"
