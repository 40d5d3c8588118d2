"""Branches, tags, differences, merges and undoing on the command line, in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Program
from tests.graphs import people_graph

from omnigraph import Graph


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = people_graph(tmp_path / "g")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("Person", {"name": "eve", "age": 1})
        w.update("Person", "ana", {"age": 31})
    return graph


def change_main(graph: Graph) -> None:
    with graph.write() as w:
        w.update("Person", "ana", {"age": 99})


class TestDiff:
    def test_text_shows_marks_and_values(self, inline: Program, graph: Graph) -> None:
        done = inline("diff", "main", "dev", "--uri", graph.uri)
        assert (done.code, done.out) == (
            0,
            "~ node Person ana\n    age: 30 -> 31\n+ node Person eve\n",
        )

    def test_json_is_one_object_with_stats(self, inline: Program, graph: Graph) -> None:
        body = inline("diff", "main", "dev", "--uri", graph.uri, "--json").json
        assert [change["op"] for change in body["changes"]] == ["update", "insert"]
        assert body["stats"] == {"inserts": 1, "updates": 1, "deletes": 0}
        assert body["schema"] == []

    def test_a_summary_counts(self, inline: Program, graph: Graph) -> None:
        done = inline("diff", "main", "dev", "--uri", graph.uri, "--summary")
        assert done.out == "node Person  +1  ~1\n"
        same = inline("diff", "main", "main", "--uri", graph.uri, "--summary")
        assert same.out == "no difference\n"

    def test_pages_follow_each_other(self, inline: Program, graph: Graph) -> None:
        first = inline("diff", "main", "dev", "--uri", graph.uri, "--limit", "1", "--json").json
        token = first["next_page_token"]
        second = inline("diff", "main", "dev", "--uri", graph.uri, "--page-token", token, "--json")
        ids = [change["id"] for page in (first, second.json) for change in page["changes"]]
        assert ids == ["ana", "eve"]
        assert "next_page_token" not in second.json

    def test_unknown_targets_are_named(self, inline: Program, graph: Graph) -> None:
        done = inline("diff", "main", "nowhere", "--uri", graph.uri)
        assert done.code == 1
        assert done.err.startswith("error[ref_not_found]: 'nowhere'")


class TestMerge:
    def test_it_says_what_it_came_to(self, inline: Program, graph: Graph) -> None:
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--delete-branch")
        assert done.code == 0
        assert done.out == "merged dev into main: fast_forward\ndeleted branch dev\n"
        assert graph.entity("node:Person", "eve")["age"] == 1
        assert graph.branches.list() == ["main"]

    def test_its_json_has_the_wire_fields(self, inline: Program, graph: Graph) -> None:
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--json", "--as", "me")
        assert {k: done.json[k] for k in ("source", "target", "outcome", "actor_id")} == {
            "source": "dev",
            "target": "main",
            "outcome": "fast_forward",
            "actor_id": "me",
        }
        assert done.json["commit"]["actor_id"] == "me"

    def test_conflicts_are_listed_and_nothing_changes(self, inline: Program, graph: Graph) -> None:
        change_main(graph)
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--json")
        assert done.code == 1
        (conflict,) = done.json["merge_conflicts"]
        assert conflict["kind"] == "divergent_update"
        assert graph.entity("node:Person", "ana")["age"] == 99

    def test_a_dry_run_shows_what_would_happen(self, inline: Program, graph: Graph) -> None:
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--dry-run")
        assert done.out.startswith("would merge dev into main: fast_forward\n~ node Person ana\n")
        change_main(graph)
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--dry-run")
        assert done.code == 1
        first, second, *values = done.out.splitlines()
        assert first == "cannot merge dev into main: 1 conflict"
        assert second.startswith("conflict divergent_update: node Person 'ana'")
        assert values[0] == "    age: base 30, ours 99, theirs 31"
        assert "merged" not in done.out
        told = inline("branch", "merge", "dev", "--uri", graph.uri, "--dry-run", "--json").json
        assert told["outcome"] == "conflicts"

    def test_remedies_name_what_was_not_tried(self, inline: Program, graph: Graph) -> None:
        change_main(graph)
        for level in ("property", "entity"):
            flags = ("--level", level, "--json")
            done = inline("branch", "merge", "dev", "--uri", graph.uri, *flags)
            assert "--strategy" in done.json["remedy"]
            assert (
                "--level" not in done.json["remedy"]
            )  # it would not help: one property is at odds

    def test_conflicts_can_be_resolved_from_a_file(
        self, inline: Program, graph: Graph, tmp_path: Path
    ) -> None:
        change_main(graph)
        told = inline("branch", "merge", "dev", "--uri", graph.uri, "--json").json
        decided = [{**c, "take": "theirs"} for c in told["merge_conflicts"]]
        file = tmp_path / "decided.json"
        file.write_text(json.dumps(decided))
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--resolve", str(file))
        assert done.code == 0
        assert graph.entity("node:Person", "ana")["age"] == 31

    def test_strategies_are_for_all_or_for_one_type(self, inline: Program, graph: Graph) -> None:
        change_main(graph)
        bad = inline("branch", "merge", "dev", "--uri", graph.uri, "--strategy", "mine")
        assert bad.err.startswith(
            f"omnigraph branch merge → {graph.uri} (direct, local)\nerror[bad_request]"
        )
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--strategy", "Person=ours")
        assert done.code == 0
        assert graph.entity("node:Person", "ana")["age"] == 99


class TestBranchesAndTags:
    def test_an_engine_can_be_named(self, inline: Program, graph: Graph) -> None:
        wrong = inline("branch", "merge", "dev", "--uri", graph.uri, "--engine", "cluster")
        assert wrong.code != 0
        assert "'cluster' is not an engine" in wrong.err
        done = inline("branch", "merge", "dev", "--uri", graph.uri, "--engine", "local")
        assert done.code == 0

    def test_a_branch_can_be_deleted_once(self, inline: Program, graph: Graph) -> None:
        delete = ("branch", "delete", "dev", "--uri", graph.uri, "--force")
        assert inline(*delete).out == "deleted branch dev\n"
        again = inline("branch", "delete", "dev", "--uri", graph.uri)
        assert (again.code, "error[branch_not_found]" in again.err) == (1, True)

    def test_a_protected_branch_stays(self, inline: Program, graph: Graph) -> None:
        inline("branch", "protect", "dev", "--uri", graph.uri)
        done = inline("branch", "delete", "dev", "--uri", graph.uri)
        assert "error[branch_protected]" in done.err
        inline("branch", "protect", "dev", "--off", "--uri", graph.uri)
        refused = inline("branch", "delete", "dev", "--uri", graph.uri)
        assert "error[branch_unmerged]" in refused.err
        assert inline("branch", "delete", "dev", "--uri", graph.uri, "--force").code == 0

    def test_tags_are_made_listed_and_removed(self, inline: Program, graph: Graph) -> None:
        head = graph.snapshot().commit_id
        made = inline("tag", "create", "v1", "--uri", graph.uri, "-m", "first")
        assert made.out == f"tagged {head} as v1\n"
        assert inline("tag", "list", "--uri", graph.uri).out.startswith(f"v1  {head}  ")
        again = inline("tag", "create", "v1", "dev", "--uri", graph.uri)
        assert "error[tag_exists]" in again.err
        assert inline("branch", "create", "at-v1", "--from", "v1", "--uri", graph.uri).code == 0
        assert inline("tag", "delete", "v1", "--uri", graph.uri).code == 0
        assert inline("tag", "list", "--uri", graph.uri, "--json").json == {"tags": []}


class TestUndo:
    def test_revert_restores_and_says_so(self, inline: Program, graph: Graph) -> None:
        change_main(graph)
        commit = graph.history.commits(limit=1)[0].commit_id
        done = inline("revert", commit, "--uri", graph.uri)
        assert done.out.startswith(f"reverted {commit} on main; commit ")
        assert graph.entity("node:Person", "ana")["age"] == 30
        assert inline("revert", commit, "--uri", graph.uri).out == "nothing to do\n"

    def test_cherry_pick_repeats_a_commit(self, inline: Program, graph: Graph) -> None:
        commit = graph.history.commits("dev", limit=1)[0].commit_id
        done = inline("cherry-pick", commit, "--uri", graph.uri)
        assert done.code == 0
        assert graph.entity("node:Person", "eve")["age"] == 1

    def test_reset_and_restore_bring_old_states_back(self, inline: Program, graph: Graph) -> None:
        old = graph.history.commits(limit=1)[0].commit_id
        change_main(graph)
        newer = graph.history.commits(limit=1)[0].commit_id
        assert inline("reset", old, "--uri", graph.uri).code == 0
        assert graph.entity("node:Person", "ana")["age"] == 30
        assert inline("restore", newer, "node:Person:ana", "--uri", graph.uri).code == 0
        assert graph.entity("node:Person", "ana")["age"] == 99
        wrong = inline("restore", newer, "Person", "--uri", graph.uri)
        assert "names neither a type nor an entity" in wrong.err
