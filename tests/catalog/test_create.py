"""Creating and opening graphs: one winner, nothing half made, every problem named."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import lance
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from tests.graphs import PEOPLE, files_below, people_graph

import omnigraph
from omnigraph.catalog.format import (
    FORMAT_VERSION_KEY,
    INTERNAL_VERSION_FLOOR,
    INTERNAL_VERSION_KEY,
)
from omnigraph.errors import (
    CorruptData,
    FormatUnsupported,
    GraphExists,
    GraphNotFound,
    LanguageError,
    PermissionDenied,
    StorageFull,
    UnsupportedLocation,
)
from omnigraph.storage import failpoints


def test_a_new_graph_has_one_table_per_type_and_one_genesis_commit(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", PEOPLE, actor="ana")
    commits = graph.history.commits()
    assert [(c.kind, c.parent, c.actor, c.manifest_version) for c in commits] == [
        ("init", None, "ana", 1)
    ]
    datasets = graph.snapshot().to_json()["datasets"]
    assert [d["type_name"] for d in datasets] == ["Knows", "LivesIn", "City", "Person"]
    assert all((tmp_path / "g" / d["dataset_path"]).is_dir() for d in datasets)


def test_D_2_paths_are_fnv_hashes_of_the_type_name(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node Person { name: String @key }")
    path = graph.snapshot().pins["node:Person"].ref.path
    assert path == "nodes/40d76f1f51639ec0"


def test_D_4_and_D_5_tables_have_stable_row_ids_and_a_primary_key(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", PEOPLE)
    for pin in graph.snapshot().pins.values():
        table = lance.dataset(tmp_path / "g" / pin.ref.path)
        assert table.has_stable_row_ids
        field = table.schema.field("id")
        assert not field.nullable
        assert field.metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    assert lance.dataset(tmp_path / "g" / "__manifest").has_stable_row_ids


def test_init_on_an_existing_graph_refuses_and_changes_nothing(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    before = files_below(tmp_path)
    with pytest.raises(GraphExists) as refusal:
        omnigraph.init(tmp_path / "g", PEOPLE)
    assert "choose another location" in refusal.value.remedy
    assert files_below(tmp_path) == before


def test_init_with_a_bad_schema_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LanguageError):
        omnigraph.init(tmp_path / "g", "node person {}")
    assert not (tmp_path / "g").exists()


def test_an_init_that_died_leaves_a_place_where_init_still_works(tmp_path: Path) -> None:
    failpoints.arm("init.before_manifest", "error")
    try:
        with pytest.raises(failpoints.FailpointError):
            omnigraph.init(tmp_path / "g", PEOPLE)
    finally:
        failpoints.disarm_all()
    assert not any((tmp_path / "g").rglob("*.lance"))  # a failed init removes its own tables
    _init_and_die(tmp_path / "g")
    assert list((tmp_path / "g" / "nodes").iterdir())  # a killed one cannot
    graph = people_graph(tmp_path / "g")
    assert graph.snapshot().pins["node:Person"].rows == 2


def _init_and_die(where: Path) -> None:
    code = f"import omnigraph; omnigraph.init({str(where)!r}, {PEOPLE!r})"
    environment = {**os.environ, failpoints.ENVIRONMENT: "init.before_manifest=kill"}
    finished = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert finished.returncode == -9


def test_a_missing_path_and_a_path_that_is_no_graph_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound, match="nothing exists at") as missing:
        omnigraph.open(tmp_path / "nowhere")
    assert "omnigraph init" in missing.value.remedy
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(GraphNotFound, match="is not a graph"):
        omnigraph.open(tmp_path)


def test_memory_is_refused_as_a_place_for_a_graph() -> None:
    with pytest.raises(UnsupportedLocation):
        omnigraph.init("memory://x", PEOPLE)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (INTERNAL_VERSION_KEY, "99", "99"),
        (INTERNAL_VERSION_KEY, str(INTERNAL_VERSION_FLOOR - 1), str(INTERNAL_VERSION_FLOOR)),
        (FORMAT_VERSION_KEY, "7", "7"),
        (FORMAT_VERSION_KEY, None, "another implementation"),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_I_2_unknown_formats_are_refused_in_both_modes(
    tmp_path: Path, key: str, value: str | None, expected: str, read_only: bool
) -> None:
    people_graph(tmp_path / "g")
    _stamp(tmp_path / "g", key, value)
    before = files_below(tmp_path)
    with pytest.raises(FormatUnsupported, match=expected) as refusal:
        omnigraph.open(tmp_path / "g", read_only=read_only)
    assert refusal.value.remedy
    assert files_below(tmp_path) == before


def _stamp(where: Path, key: str, value: str | None) -> None:
    manifest = lance.dataset(where / "__manifest")
    update = LanceOperation.UpdateConfig(
        schema_metadata_updates=LanceOperation.UpdateMap({key: value})
    )
    LanceDataset.commit(manifest, Transaction(manifest.version, update))


def test_a_damaged_manifest_is_named_and_left_alone(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    versions = tmp_path / "g" / "__manifest" / "_versions"
    newest = min(versions.glob("*.manifest"))
    newest.write_bytes(b"garbage")
    with pytest.raises(CorruptData) as damaged:
        omnigraph.open(tmp_path / "g")
    assert "backup" in damaged.value.remedy
    assert newest.read_bytes() == b"garbage"
    shutil.rmtree(versions)
    with pytest.raises(CorruptData):
        omnigraph.open(tmp_path / "g")


def test_a_read_only_file_system_is_a_permission_problem_and_readable(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    with _mounted(tmp_path / "ro", f"--bind {tmp_path / 'g'}", "remount,ro,bind") as place:
        with pytest.raises(PermissionDenied) as denied:
            omnigraph.init(place / "new", PEOPLE)
        assert "access" in denied.value.remedy
        graph = omnigraph.open(place, read_only=True)
        assert graph.snapshot().pins["node:Person"].rows == 2
        with pytest.raises(PermissionDenied), omnigraph.open(place).write() as w:
            w.insert("City", {"name": "Rome"})


class _mounted:
    """A mount that goes away with the block; the test is skipped where mounting is not allowed."""

    def __init__(self, point: Path, source: str, remount: str | None = None) -> None:
        self.point, self.source, self.remount = point, source, remount

    def __enter__(self) -> Path:
        self.point.mkdir()
        if _run(f"mount {self.source} {self.point}") != 0:
            pytest.skip("mounting is not allowed here")
        if self.remount is not None and _run(f"mount -o {self.remount} {self.point}") != 0:
            _run(f"umount {self.point}")
            pytest.skip("remounting is not allowed here")
        return self.point

    def __exit__(self, *_: object) -> None:
        assert _run(f"umount {self.point}") == 0


def _run(command: str) -> int:
    return subprocess.run(command.split(), check=False, capture_output=True).returncode


def test_F_10_a_full_disk_is_a_typed_error_and_nothing_is_half_visible(tmp_path: Path) -> None:
    with _mounted(tmp_path / "small", "-t tmpfs -o size=8m tmpfs") as place:
        graph = people_graph(place / "g")
        before = graph.snapshot()
        filler = place / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        with pytest.raises(StorageFull) as full, graph.write() as w:
            w.insert("Person", {"name": "x" * 10_000})
        assert "space" in full.value.remedy
        assert graph.snapshot().pins == before.pins
        filler.unlink()
        with graph.write() as w:
            w.insert("Person", {"name": "cy"})
        assert graph.snapshot().pins["node:Person"].rows == 3


def test_F_10_a_file_size_limit_is_a_typed_error(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    code = f"""
import resource, signal, sys
import omnigraph
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
graph = omnigraph.open({str(tmp_path / "g")!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    with graph.write() as w:
        w.insert("Person", {{"name": "x" * 100_000}})
except omnigraph.errors.StorageFull:
    sys.exit(7)
"""
    finished = subprocess.run([sys.executable, "-c", code], check=False)
    assert finished.returncode == 7
    assert omnigraph.open(tmp_path / "g").snapshot().pins["node:Person"].rows == 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000  # the limit stayed in the child
