"""Graphs of the Rust original are converted elsewhere; the source is left alone (ADR 36)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graphs import files_below
from tests.support.original_graphs import TOLD, Told, aged, exported, lineage, parsed, unpacked

import omnigraph
from omnigraph.errors import BackupRefused
from omnigraph.storage import failpoints

AFTER = Told("pending", "main", ".after-recovery")


@pytest.mark.parametrize("name", ["museum", "evolved", "pending"])
def test_a_clone_holds_what_the_original_holds(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    before = files_below(root)
    omnigraph.open(root, read_only=True).maintenance.clone(tmp_path / "copy")
    assert files_below(root) == before
    copy = omnigraph.open(tmp_path / "copy")
    for told in (t for t in TOLD if t.name == name):
        assert exported(copy, told.branch) == parsed(told.entities, copy, told.branch)
        if name != "pending":
            assert lineage(copy, told.branch) == told.commits
    if name == "pending":
        assert exported(copy) == parsed(AFTER.entities, copy)
        assert lineage(copy)[:2] == AFTER.commits[:2]
    assert copy.maintenance.check().findings == []


def test_a_clone_of_an_old_version_takes_the_steps_in_the_copy(tmp_path: Path) -> None:
    root = unpacked("museum", tmp_path)
    aged(root, 1)
    before = files_below(root)
    omnigraph.open(root, read_only=True).maintenance.clone(tmp_path / "copy")
    assert files_below(root) == before
    copy = omnigraph.open(tmp_path / "copy")
    assert lineage(copy, "feature/x") == TOLD[1].commits


def test_a_place_with_other_files_is_refused(tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    with pytest.raises(BackupRefused):
        omnigraph.open(root, read_only=True).maintenance.clone(tmp_path / "copy")


@pytest.mark.parametrize("point", ["copy.after_files", "copy.before_head", "copy.after_head"])
def test_an_interrupted_clone_is_nothing_or_an_original(point: str, tmp_path: Path) -> None:
    source = omnigraph.open(unpacked("museum", tmp_path), read_only=True)
    failpoints.arm(point, "error")
    with pytest.raises(failpoints.FailpointError):
        source.maintenance.clone(tmp_path / "copy")
    failpoints.disarm_all()
    if point == "copy.after_head":
        omnigraph.upgrade(tmp_path / "copy", apply=True)
    else:
        source.maintenance.clone(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy")
    assert lineage(copy, "feature/x") == TOLD[1].commits


@pytest.mark.s3
def test_a_clone_in_a_bucket(bucket: str, tmp_path: Path) -> None:
    source = omnigraph.open(unpacked("museum", tmp_path), read_only=True)
    source.maintenance.clone(f"{bucket}/copy")
    copy = omnigraph.open(f"{bucket}/copy")
    for told in TOLD[:2]:
        assert exported(copy, told.branch) == parsed(told.entities, copy, told.branch)
        assert lineage(copy, told.branch) == told.commits
