"""``durability="fsync"``: every file that a write made was synced before it was acknowledged.

The calls of this process are recorded: each file that is new afterwards, and the directory that
names it, must be among them. Their order is taken from the kernel (``strace``).
"""

from __future__ import annotations

import base64
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pytest
from tests.graphs import files_below

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidInput
from omnigraph.storage.lance.tables import version_file

SCHEMA = """
node Person { name: String @key  age: I32? @index  photo: Blob? }
node Note { text: String }
edge Knows: Person -> Person { since: I32? }
"""
BLOB = "base64:" + base64.b64encode(bytes(200_000)).decode()  # gets a file of its own
HARMLESS = re.compile(r"#\d+$")  # locks and files in the making


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The paths that this process has synced, as the system knows them."""
    found: set[str] = set()
    fsync = os.fsync

    def record(handle: int) -> None:
        fsync(handle)
        found.add(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", record)
    return found


def write(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Person", {"name": "cy", "age": 3})
        w.insert_edge("Knows", "ana", "cy")
        w.insert("Note", {"text": "hello"})


def write_blob(graph: Graph) -> None:
    with graph.write() as w:
        w.update("Person", "ana", {"photo": BLOB})


def delete(graph: Graph) -> None:
    graph.mutate('query q() { delete Person where name = "bo" }')


def overwrite(graph: Graph) -> None:
    graph.load({"Note": [{"text": "other"}]}, mode="overwrite")


def first_write_on_a_branch(graph: Graph) -> None:
    graph.branches.create("side")
    with graph.write("side") as w:
        w.update("Person", "ana", {"age": 9})


def evolve(graph: Graph) -> None:
    wider = SCHEMA.replace("text: String", "text: String  size: I32?")
    graph.apply_schema(wider + "node City { name: String @key }", backfill={"Note.size": 1})


def index(graph: Graph) -> None:
    graph.maintenance.build_indexes()


def optimize(graph: Graph) -> None:
    for n in range(3):
        graph.load({"Note": [{"text": str(n)}]}, mode="append")
    graph.maintenance.optimize()


def reset(graph: Graph) -> None:
    graph.reset(graph.history.commits()[1].commit_id, "main")


def tag(graph: Graph) -> None:
    graph.tags.create("v1")


OPERATIONS: list[Callable[[Graph], None]] = [
    write,
    write_blob,
    delete,
    overwrite,
    first_write_on_a_branch,
    evolve,
    index,
    optimize,
    reset,
    tag,
]


def make(where: Path) -> Graph:
    graph = omnigraph.init(where, SCHEMA, durability="fsync")
    with graph.write() as w:
        w.insert("Person", {"name": "ana", "age": 1})
        w.insert("Person", {"name": "bo", "age": 2})
        w.insert("Note", {"text": "first"})
    with graph.write() as w:
        w.insert_edge("Knows", "ana", "bo")
    return graph


def published_indexes(where: Path) -> set[str]:
    pins = omnigraph.open(where, read_only=True).snapshot().pins.values()
    tables = [lance.dataset(where / p.ref.dataset_path, version=p.ref.version) for p in pins]
    return {index["uuid"] for table in tables for index in table.list_indices()}


def not_synced(where: Path, before: dict[str, int], synced: set[str]) -> Iterator[str]:
    """New files, and directories with new names, that nobody synced."""
    indexes = published_indexes(where)
    for name in set(files_below(where)) - set(before):
        path = where / name
        if HARMLESS.search(name) or name.startswith("__recovery"):
            continue
        if "/_indices/" in name and path.parent.name not in indexes:
            continue  # left by the making of an index, and named by nothing
        if str(path) not in synced:
            yield name
        for parent in path.parents:
            if str(parent) not in synced and (parent == path.parent or parent == where):
                yield f"{parent.relative_to(where)}/"
            if parent == where:
                break


def test_a_new_graph_is_synced(tmp_path: Path, synced: set[str]) -> None:
    omnigraph.init(tmp_path / "g", SCHEMA, durability="fsync")
    assert sorted(not_synced(tmp_path / "g", {}, synced)) == []


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_file_that_a_write_makes_is_synced(
    tmp_path: Path, synced: set[str], operation: Callable[[Graph], None]
) -> None:
    graph = make(tmp_path / "g")
    graph = omnigraph.open(graph.uri, durability="fsync")
    before = files_below(tmp_path / "g")
    synced.clear()
    operation(graph)
    assert sorted(not_synced(tmp_path / "g", before, synced)) == []
    assert any("__recovery" in path for path in synced) or operation in (reset, tag)


def test_without_being_asked_nothing_is_synced(tmp_path: Path, synced: set[str]) -> None:
    write_blob(make(tmp_path / "one"))
    assert synced
    synced.clear()
    graph = omnigraph.open(tmp_path / "one")
    delete(graph)
    assert synced == set()


def test_the_environment_and_a_pickled_handle_ask_for_it_too(
    tmp_path: Path, synced: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make(tmp_path / "g")
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    before = files_below(tmp_path / "g")
    synced.clear()
    delete(omnigraph.open(graph.uri))
    assert sorted(not_synced(tmp_path / "g", before, synced)) == []
    monkeypatch.delenv("OMNIGRAPH_DURABILITY")
    before = files_below(tmp_path / "g")
    synced.clear()
    write_blob(pickle.loads(pickle.dumps(graph)))
    assert sorted(not_synced(tmp_path / "g", before, synced)) == []


def test_an_unknown_durability_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="durability must be process or fsync, not 'disk'"):
        omnigraph.init(tmp_path / "g", SCHEMA, durability="disk")  # type: ignore[arg-type]
    assert not (tmp_path / "g").exists()
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "sometimes")
    with pytest.raises(InvalidInput, match="OMNIGRAPH_DURABILITY is 'sometimes'"):
        omnigraph.init(tmp_path / "g", SCHEMA)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_data_is_synced_before_the_version_that_names_it_exists(tmp_path: Path) -> None:
    """As the kernel sees it: the rows, then the table's version, then the manifest's version."""
    graph = make(tmp_path / "g")
    text = (
        "import omnigraph, sys\n"
        "with omnigraph.open(sys.argv[1], durability='fsync').write() as w:\n"
        "    w.insert('Note', {'text': 'traced'})\n"
        "open(sys.argv[2], 'w').close()\n"
    )
    log, done = tmp_path / "trace", tmp_path / "acknowledged"
    command = [
        "strace",
        "-f",
        "-y",
        "-e",
        "trace=fsync,openat,link,linkat,rename,renameat,renameat2",
        "-o",
        str(log),
    ]
    traced = subprocess.run(
        [*command, sys.executable, "-c", text, graph.uri, str(done)],
        check=False,
        capture_output=True,
        text=True,
    )
    if "ptrace" in traced.stderr.lower():
        pytest.skip("this machine does not let a process be traced")
    assert traced.returncode == 0, traced.stderr
    calls = log.read_text().splitlines()
    syncs = [(n, found[1]) for n, call in enumerate(calls) if (found := _SYNC.search(call))]
    acknowledged = next(n for n, call in enumerate(calls) if f'"{done}"' in call)
    note = graph.snapshot().pin("node:Note").ref.path

    def at(part: str) -> int:
        """When something below this part of the graph was first synced."""
        return min(n for n, path in syncs if f"{graph.uri}/{part}" in path)

    rows, version = at(f"{note}/data/"), at(f"{note}/_versions/")
    published = at("__manifest/_versions/")
    assert at("__recovery/") < version
    assert rows < version < published < acknowledged
    made = version_file(graph.snapshot().pin("node:Note").ref.version)
    created = next(n for n, call in enumerate(calls) if f"{note}/_versions/{made}" in call)
    assert rows < created


_SYNC = re.compile(r"fsync\(\d+<([^>]+)>\)")
