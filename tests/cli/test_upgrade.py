"""``omnigraph upgrade``: what it says, what it does."""

from __future__ import annotations

from pathlib import Path

from tests.catalog.migrations.old import old_graph
from tests.cli.conftest import Program
from tests.graphs import files_below, people_graph


def test_upgrade_says_what_it_would_do_on_every_branch_and_changes_nothing(
    inline: Program, tmp_path: Path
) -> None:
    old_graph(tmp_path / "g", 1)
    before = files_below(tmp_path / "g")
    said = inline("upgrade", str(tmp_path / "g"), "--check")
    assert said.code == 0
    assert "main  1 → 2  declare the primary key of the manifest" in said.out
    assert "the ref __run__01, the ref __run__02" in said.out
    assert "side  3 → 4  move the commits into the manifest" in said.out
    assert "4 commits" in said.out
    assert said.out.endswith(
        "would bring 2 branches to the current format, version 4; say --apply to do it\n"
    )
    told = inline("upgrade", str(tmp_path / "g"), "--json").json
    assert (told["applied"], told["current_version"]) == (False, 4)
    assert [(b["branch"], b["found_version"]) for b in told["branches"]] == [
        ("main", 1),
        ("side", 1),
    ]
    assert told["branches"][0]["steps"][2] == {
        "from_version": 3,
        "to_version": 4,
        "step": "move the commits into the manifest",
        "touches": ["3 commits"],
    }
    assert files_below(tmp_path / "g") == before


def test_upgrade_brings_every_branch_on_and_then_has_nothing_to_do(
    inline: Program, tmp_path: Path
) -> None:
    old_graph(tmp_path / "g", 2)
    done = inline("upgrade", str(tmp_path / "g"), "--apply")
    assert "brought 2 branches to the current format, version 4" in done.out
    again = inline("upgrade", str(tmp_path / "g"), "--apply", "--json").json
    assert [b["found_version"] for b in again["branches"]] == [4, 4]
    assert "every branch has the current format" in inline("upgrade", str(tmp_path / "g")).out


def test_upgrade_takes_one_of_its_two_options(inline: Program, tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    refused = inline("upgrade", str(tmp_path / "g"), "--check", "--apply")
    assert refused.code == 1
    assert "exclude each other" in refused.err
