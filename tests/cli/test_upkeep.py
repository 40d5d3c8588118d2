"""The verbs of upkeep: optimize, index, cleanup, fsck, repair, backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Program
from tests.graphs import people_graph


def test_optimize_reports_every_type_and_says_nothing_to_do_the_second_time(
    inline: Program, tmp_path: Path
) -> None:
    graph = people_graph(tmp_path / "g")
    with graph.write() as w:
        w.insert("City", {"name": "Rome"})
    done = inline("optimize", str(tmp_path / "g"), "--json").json
    by_key = {item["type_key"]: item for item in done["datasets"]}
    assert set(by_key) == {*graph.snapshot().pins, "__manifest"}
    assert (by_key["node:City"]["fragments_removed"], by_key["node:City"]["committed"]) == (2, True)
    again = inline("optimize", str(tmp_path / "g"))
    assert again.out.count("nothing to do") == len(by_key)
    assert "omnigraph optimize → " in again.err


def test_indexes_are_listed_built_and_dropped(inline: Program, tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    assert "missing" in inline("index", "list", str(tmp_path / "g")).out
    built = inline("index", "build", str(tmp_path / "g"), "--json").json["indexes"]
    assert {item["state"] for item in built} == {"built"}
    status = inline("index", "status", str(tmp_path / "g")).out
    assert "2/2 rows  1 part" in status
    assert "0 to build" in status
    gone = inline("index", "drop", "node", "Person", "name", "--uri", str(tmp_path / "g"))
    assert gone.out == "dropped BTREE on node:Person.name\n"
    assert "1 to build" in inline("index", "status", str(tmp_path / "g")).out
    refused = inline("index", "drop", "node", "Person", "name", "--uri", str(tmp_path / "g"))
    assert refused.code == 1
    assert "has no index to drop" in refused.err


def test_cleanup_prints_what_would_go_and_removes_it_when_confirmed(
    inline: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_READER_GRACE_SECONDS", "0")
    graph = people_graph(tmp_path / "g")
    first = graph.history.commits()[-2].commit_id
    assert inline("cleanup", str(tmp_path / "g")).code == 1
    refused = inline("cleanup", str(tmp_path / "g"), "--older-than", "7 years")
    assert refused.code == 1
    assert "15m" in refused.err
    preview = inline("cleanup", str(tmp_path / "g"), "--keep", "1")
    assert preview.code == 0
    assert "say --confirm" in preview.err
    assert "would remove" in preview.out
    assert inline("export", str(tmp_path / "g"), "--at", first).code == 0
    done = inline("cleanup", str(tmp_path / "g"), "--keep", "1", "--confirm", "--json").json
    assert done["keep_versions"] == 1
    assert done["bytes_removed"] > 0
    assert {item["error"] for item in done["datasets"]} == {None}
    reclaimed = inline("export", str(tmp_path / "g"), "--at", first, "--json")
    assert reclaimed.json["reason"] == "history_reclaimed"


def test_fsck_and_repair_name_what_is_wrong_and_exit_with_1(
    inline: Program, tmp_path: Path
) -> None:
    import lance

    graph = people_graph(tmp_path / "g")
    where = str(tmp_path / "g")
    assert "no damage found" in inline("fsck", where).out
    assert inline("fsck", where, "--quick", "--json").json["healthy"]
    assert inline("repair", where).out == "nothing to repair\n"
    lance.dataset(f"{where}/{graph.snapshot().pin('node:City').ref.path}").delete("true")
    damaged = inline("fsck", where, "--json")
    assert damaged.code == 1
    assert [item["damage"] for item in damaged.json["findings"]] == ["drift"]
    preview = inline("repair", where)
    assert (preview.code, "suspicious  preview" in preview.out) == (0, True)
    assert inline("repair", where, "--force").code == 1
    refused = inline("repair", where, "--confirm", "--json")
    assert refused.code == 1
    (city,) = [d for d in refused.json["datasets"] if d["type_key"] == "node:City"]
    assert (city["classification"], city["action"]) == ("suspicious", "refused")
    assert "restored" in inline("repair", where, "--confirm", "--restore").out
    assert inline("fsck", where).code == 0


def test_purge_foretells_and_then_removes_an_entity(inline: Program, tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    where = str(tmp_path / "g")
    foretold = inline("purge", "node", "Person", "ana", where)
    assert "would purge it from branch main" in foretold.out
    assert "out of reach:" in foretold.out
    done = inline("purge", "node", "Person", "ana", where, "--confirm", "--json").json
    assert (done["confirmed"], done["branches"]) == (True, ["main"])
    again = inline("purge", "node", "Person", "ana", where, "--confirm", "--json")
    assert (again.code, again.json["reason"]) == (1, "entity_not_found")
    assert inline("fsck", where).code == 0


def test_backup_and_clone_say_what_they_copied(inline: Program, tmp_path: Path) -> None:
    graph = people_graph(tmp_path / "g")
    where, backup = str(tmp_path / "g"), str(tmp_path / "backup")
    first = inline("backup", backup, "--uri", where, "--json").json
    assert first["graph_commit_id"] == graph.history.commits()[0].commit_id
    assert first["files_there"] == 0
    assert "copied 0 files" in inline("backup", backup, "--uri", where).out
    assert inline("clone", str(tmp_path / "c"), "--uri", backup).code == 0
    refused = inline("clone", str(tmp_path / "c"), "--uri", backup, "--json")
    assert (refused.code, refused.json["reason"]) == (1, "backup_refused")


def test_cleanup_says_that_readers_keep_what_it_leaves(inline: Program, tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    done = inline("cleanup", str(tmp_path / "g"), "--keep", "1", "--confirm", "--yes")
    assert "2 commits stay for now: a state may be read for 3600 s" in done.out
    assert "(OMNIGRAPH_READER_GRACE_SECONDS)" in done.out


def test_a_load_is_reported_before_its_upkeep_which_may_be_interrupted(
    inline: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    graph = people_graph(tmp_path / "g")
    data = tmp_path / "d.jsonl"
    data.write_text('{"type": "City", "data": {"name": "Rome"}}\n')
    printed: list[str] = []

    def interrupted(*_: object) -> list[str]:
        printed.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.local.context.run_upkeep", interrupted)
    arguments = ["load", graph.uri, "--data", str(data), "--mode"]
    assert inline(*arguments, "append").code == 0
    assert "loaded 1 entities into main; commit " in printed[0]
    assert (
        inline("load", graph.uri, "--data", str(data), "--mode", "merge", "--no-upkeep").code == 0
    )
    assert len(printed) == 1
