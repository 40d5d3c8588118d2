"""The disk cache of derived arrays: reused, verified, and never required."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from omnigraph import Graph
from omnigraph.engine.cache.disk_store import ArrayStore, configured_store
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader
from omnigraph.engine.tables import loaded_edges
from omnigraph.settings import Settings
from omnigraph.spark.session.java import cache_directories
from tests.engine.graphs import load_graph
from tests.support.internals import repository_of

BYTES_MAX = 1 << 30
ARRAYS = {"starts": np.arange(5, dtype=np.int64), "nodes": np.array([3, 1], dtype=np.int32)}
NOTHING = {"starts": np.empty(0, dtype=np.int64)}
HOPS = (
    "query q() { match { $x: Spot  $x link{1,2} $y } return { $x.k, $y.k } order { $x.k, $y.k } }"
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    store = ArrayStore(tmp_path, BYTES_MAX)
    for name, arrays in (("a", ARRAYS), ("b", NOTHING)):
        store.write(name, arrays)
        found = store.read(name)
        assert found is not None
        assert {key: array.tolist() for key, array in found.items()} == {
            key: array.tolist() for key, array in arrays.items()
        }
    assert store.read("c") is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "other format", "empty"])
def test_a_damaged_file_is_dropped(tmp_path: Path, damage: str) -> None:
    store = ArrayStore(tmp_path, BYTES_MAX)
    store.write("a", ARRAYS)
    (path,) = tmp_path.glob("*/*")
    data = path.read_bytes()
    changed = {
        "cut": data[:-80],
        "flipped": data[:-64] + bytes([data[-64] ^ 1]) + data[-63:],
        "other format": b"x" + data[1:],
        "empty": b"",
    }[damage]
    path.write_bytes(changed)
    assert store.read("a") is None
    assert not path.exists()


def test_the_oldest_files_go_when_there_are_too_many_bytes(tmp_path: Path) -> None:
    large = {"a": np.zeros(1_000, dtype=np.int64)}
    store = ArrayStore(tmp_path, bytes_max=20_000)
    for at in range(4):
        store.write(str(at), large)
        for path in tmp_path.glob("*/*"):
            os.utime(path, (path.stat().st_mtime - 10, path.stat().st_mtime - 10))
    assert store.read("3") is not None
    assert store.read("0") is None
    assert sum(path.stat().st_size for path in tmp_path.glob("*/*")) <= 20_000


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = ArrayStore(tmp_path / "file" / "below", BYTES_MAX)
    store.write("a", ARRAYS)
    assert store.read("a") is None


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(loaded_edges, "EDGES_STORED_MIN", 1)
    return load_graph(tmp_path / "g", "lnk")


def _reader(graph: Graph, where: Path) -> Reader:
    return Reader(
        repository_of(graph), cache=MemoryCache(1 << 20), store=ArrayStore(where, BYTES_MAX)
    )


def test_another_process_finds_the_adjacency(links: Graph, tmp_path: Path) -> None:
    where = tmp_path / "cache"
    expected = _reader(links, where).query(HOPS).rows()
    files = {path: path.read_bytes() for path in where.glob("*/*")}
    assert files
    assert _reader(links, where).query(HOPS).rows() == expected
    assert {path: path.read_bytes() for path in where.glob("*/*")} == files


def test_a_write_makes_another_file_and_another_answer(links: Graph, tmp_path: Path) -> None:
    where = tmp_path / "cache"
    reader = _reader(links, where)
    before = reader.query(HOPS).rows()
    with links.write() as w:
        w.insert("Spot", {"k": "d"})
        w.insert_edge("Link", "c", "d")
    after = reader.query(HOPS).rows()
    assert len(after) > len(before)
    assert _reader(links, where).query(HOPS).rows() == after


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"OMNIGRAPH_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/x"}, "/a"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/omnigraph"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/omnigraph"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/omnigraph"),
        ({}, "/home/me/.cache/omnigraph"),
    ],
)
def test_every_cache_is_where_the_environment_says(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    settings = Settings.from_environment(environment)
    store = configured_store(settings.cache)
    assert store is not None
    assert str(store.directory) == expected
    assert [str(cache_directories(settings, name)[0]) for name in ("java", "spark")] == [
        f"{expected}/java",
        f"{expected}/spark",
    ]


def test_arrays_are_not_kept_on_disk_when_the_directory_is_empty() -> None:
    settings = Settings.from_environment({"OMNIGRAPH_CACHE_DIR": ""})
    assert configured_store(settings.cache) is None
