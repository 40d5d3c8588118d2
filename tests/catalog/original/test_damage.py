"""Damaged, mixed and unsupported graphs of the original: typed errors, nothing written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.graphs import files_below
from tests.support.original_graphs import STAMP, exported, unpacked

import omnigraph
from omnigraph.errors import CorruptData, FormatUnsupported, OmnigraphError

SEEDS = 20


def stamp(root: Path, value: str) -> None:
    lance.dataset(root / "__manifest").update_schema_metadata({STAMP: value})


def add_row(root: Path, **entries: object) -> None:
    manifest = lance.dataset(root / "__manifest")
    row = {**dict.fromkeys(manifest.schema.names), "table_key": "", **entries}
    table = pa.Table.from_pylist([row], schema=manifest.schema)
    lance.write_dataset(table, root / "__manifest", mode="append")


def used_files(root: Path) -> list[Path]:
    """Files without which something that main shows cannot be read."""
    graph = omnigraph.open(root, read_only=True)
    found = [root / name for name in ("_schema.pg", "_schema.ir.json", "__schema_state.json")]
    tables = {(pin.ref.path, pin.ref.version) for pin in graph.snapshot().pins.values()}
    tables.add(("__manifest", graph.snapshot().manifest_version))
    for path, version in sorted(tables):
        found.append(root / path / "_versions" / f"{2**64 - 1 - version:020d}.manifest")
        for fragment in lance.dataset(root / path, version=version).get_fragments():
            found += [root / path / "data" / file.path for file in fragment.metadata.files]
    return sorted(found)


def lose_file(root: Path, chance: random.Random) -> None:
    chance.choice(used_files(root)).unlink()


def cut_file(root: Path, chance: random.Random) -> None:
    path = chance.choice(used_files(root))
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size // 2)])


def odd_row(root: Path, chance: random.Random) -> None:
    add_row(
        root,
        **chance.choice(
            [
                {"object_id": "x", "object_type": "table_view"},
                {"object_id": "01", "object_type": "graph_commit", "metadata": "{"},
                {"object_id": "01", "object_type": "graph_commit"},
                {"object_id": "n", "object_type": "table_version", "table_key": "node:Nobody",
                 "table_version": 1, "row_count": 0, "metadata": "{}"},
                {"object_id": "graph_head:main2", "object_type": "graph_head",
                 "metadata": '{"head_commit_id":"gone"}'},
            ]
        ),
    )  # fmt: skip


def odd_stamp(root: Path, chance: random.Random) -> None:
    stamp(root, chance.choice(["0", "5", "14", "four", "-1"]))


DAMAGES: list[Callable[[Path, random.Random], None]] = [lose_file, cut_file, odd_row, odd_stamp]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_damage_is_a_typed_error_and_changes_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_UPGRADE_WATCH_SECONDS", "0")
    chance = random.Random(seed)
    root = unpacked(chance.choice(["museum", "evolved", "pending"]), tmp_path)
    DAMAGES[seed % len(DAMAGES)](root, chance)
    before = files_below(root)
    with pytest.raises(OmnigraphError) as failure:
        exported(omnigraph.open(root, read_only=True))
    assert failure.value.remedy
    with pytest.raises(OmnigraphError):
        omnigraph.upgrade(root, apply=True)
    assert files_below(root) == before


@pytest.mark.parametrize("version", range(5, 15))
def test_newer_versions_are_refused_with_both_commands(version: int, tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    stamp(root, str(version))
    for read_only in (True, False):
        with pytest.raises(FormatUnsupported, match=f"version {version}") as refusal:
            omnigraph.open(root, read_only=read_only)
        remedy = refusal.value.remedy or ""
        assert f"omnigraph export {root}" in remedy
        assert "omnigraph load --data graph.jsonl" in remedy


def test_a_version_below_the_floor_is_refused(tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    stamp(root, "0")
    with pytest.raises(FormatUnsupported, match="version 0"):
        omnigraph.open(root, read_only=True)


def test_schema_files_that_disagree_are_named(tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    text = (root / "_schema.pg").read_text()
    (root / "_schema.pg").write_text(text.replace("wing: String?", "wing: I32?"))
    with pytest.raises(CorruptData, match=r"_schema.ir.json has another node:Hall"):
        omnigraph.open(root, read_only=True)
    (root / "_schema.pg").write_text(text)
    state = json.loads((root / "__schema_state.json").read_text())
    state["schema_ir_hash"] = "sha256:0"
    (root / "__schema_state.json").write_text(json.dumps(state))
    with pytest.raises(CorruptData, match="hash"):
        omnigraph.open(root, read_only=True)


def test_a_manifest_with_columns_of_both_is_mixed(tmp_path: Path) -> None:
    root = unpacked("evolved", tmp_path)
    lance.dataset(root / "__manifest").add_columns(pa.field("extra", pa.bool_()))
    with pytest.raises(CorruptData, match="extra"):
        omnigraph.open(root, read_only=True)
