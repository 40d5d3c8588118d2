"""Each verb, driven as the real program in a process of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Program
from tests.graphs import PEOPLE, files_below
from tests.support.s3server import S3Server

import omnigraph as engine

ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
COMMIT_FIELDS = [
    "graph_commit_id",
    "graph_branch",
    "graph_manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
]


@pytest.fixture
def schema(tmp_path: Path) -> str:
    file = tmp_path / "people.pg"
    file.write_text(PEOPLE)
    return str(file)


class TestInit:
    def test_it_creates_a_graph_and_says_where(
        self, omnigraph: Program, tmp_path: Path, schema: str
    ) -> None:
        done = omnigraph("init", "--schema", schema, "new dir/my graph")
        where = tmp_path / "new dir" / "my graph"
        assert (done.code, done.out, done.err) == (0, f"initialized {where}\n", "")
        assert [c.kind for c in engine.open(where, read_only=True).history.commits()] == ["init"]

    def test_its_json_is_the_place_and_the_first_commit(
        self, omnigraph: Program, tmp_path: Path, schema: str
    ) -> None:
        done = omnigraph("init", "--json", "--schema", schema, "g")
        assert done.code == 0
        assert done.json["uri"] == str(tmp_path / "g")
        assert list(done.json["commit"])[:7] == COMMIT_FIELDS
        assert done.json["commit"]["parent_commit_id"] is None

    @pytest.mark.parametrize("force", [[], ["--force"]])
    def test_it_refuses_an_existing_graph_and_changes_nothing(
        self, omnigraph: Program, people: Path, schema: str, force: list[str]
    ) -> None:
        before = files_below(people)
        done = omnigraph("init", "--schema", schema, *force, str(people))
        assert done.code == 1
        assert done.out == ""
        assert done.err.startswith("error[graph_exists]: ")
        assert "\nremedy: " in done.err
        assert files_below(people) == before

    def test_a_schema_that_does_not_compile_is_shown_with_its_place(
        self, omnigraph: Program, tmp_path: Path
    ) -> None:
        (tmp_path / "bad.pg").write_text("node P {\n  a: Strin\n  b: Bol\n}\n")
        done = omnigraph("init", "--schema", "bad.pg", "g")
        assert done.code == 1
        assert done.err.startswith("bad.pg:2:6: error[")
        assert "^^^^^" in done.err
        assert "error[language_error]: 2 errors in bad.pg\nremedy: " in done.err
        assert not (tmp_path / "g").exists()

    def test_a_schema_that_does_not_compile_is_data_with_json(
        self, omnigraph: Program, tmp_path: Path
    ) -> None:
        (tmp_path / "bad.pg").write_text("node P { a: Strin }")
        done = omnigraph("init", "--schema", "bad.pg", "g", "--json")
        assert (done.code, done.err) == (1, "")
        assert done.json["reason"] == "language_error"
        (diagnostic,) = done.json["details"]["diagnostics"]
        assert (diagnostic["file"], diagnostic["line"]) == ("bad.pg", 1)

    def test_it_refuses_a_place_inside_a_cluster(
        self, omnigraph: Program, tmp_path: Path, schema: str
    ) -> None:
        (tmp_path / "c" / "__cluster").mkdir(parents=True)
        (tmp_path / "c" / "__cluster" / "state.json").write_text("{}")
        done = omnigraph("init", "--schema", schema, "c/graphs/g.omni")
        assert done.code == 1
        assert "belongs to the cluster" in done.err
        assert not (tmp_path / "c" / "graphs").exists()

    @pytest.mark.s3
    def test_it_creates_a_graph_on_s3(self, omnigraph: Program, s3: S3Server, schema: str) -> None:
        uri = f"{s3.create_bucket('cli')}/a graph"
        done = omnigraph("init", "--schema", schema, uri, **s3.environment())
        assert (done.code, done.out) == (0, f"initialized {uri}\n")
        done = omnigraph("branch", "create", "b", "--uri", uri, **s3.environment())
        assert done.code == 0
        assert done.err == f"omnigraph branch create → {uri} (direct, remote)\n"


class TestSnapshot:
    def test_it_lists_every_type(self, omnigraph: Program, people: Path) -> None:
        done = omnigraph("snapshot", str(people))
        assert (done.code, done.err) == (0, "")
        head, *types = done.out.splitlines()
        assert re.fullmatch(r"branch main at manifest version \d+", head)
        assert [line.split()[:3] for line in types] == [
            ["edge", "Knows", "1"],
            ["edge", "LivesIn", "1"],
            ["node", "City", "1"],
            ["node", "Person", "2"],
        ]

    def test_its_json_is_the_wire_form(self, omnigraph: Program, people: Path) -> None:
        done = omnigraph("snapshot", str(people), "--branch", "feature/x", "--json")
        assert done.code == 0
        expected = engine.open(people, read_only=True).snapshot("feature/x").to_json()
        assert done.json == expected
        assert {"graph_branch", "graph_manifest_version", "internal_schema_version"} <= set(
            done.json
        )
        assert set(done.json["datasets"][0]) == {
            "entity_kind",
            "type_name",
            "dataset_path",
            "published_dataset_version",
            "native_dataset_branch",
            "entity_count",
        }

    def test_it_writes_nothing(self, omnigraph: Program, people: Path) -> None:
        before = files_below(people)
        assert omnigraph("snapshot", str(people)).code == 0
        assert files_below(people) == before


class TestCommit:
    def test_list_is_newest_first(self, omnigraph: Program, people: Path) -> None:
        done = omnigraph("commit", "list", str(people))
        assert (done.code, done.err) == (0, "")
        lines = [line.split() for line in done.out.splitlines()]
        assert all(ULID.fullmatch(line[0]) for line in lines)
        assert [line[3:] for line in lines] == [
            ["write", "-", "ties"],
            ["write", "tester", "people"],
            ["init", "tester"],
        ]

    def test_list_as_json_is_the_wire_form(self, omnigraph: Program, people: Path) -> None:
        done = omnigraph("commit", "list", "--json", "--limit", "2", str(people))
        commits = engine.open(people, read_only=True).history.commits()
        assert done.json == {"commits": [commit.to_json() for commit in commits[:2]]}
        assert list(done.json["commits"][0])[:7] == COMMIT_FIELDS

    @pytest.mark.parametrize(
        ("filters", "messages"),
        [
            (["actor=tester"], ["people", None]),
            (["actor=tester", "kind=write"], ["people"]),
            (["message=ties"], ["ties"]),
            (["branch=main"], ["ties", "people", None]),
            (["metadata.source=x"], []),
        ],
    )
    def test_list_filters(
        self, inline: Program, people: Path, filters: list[str], messages: list[str | None]
    ) -> None:
        flags = [part for text in filters for part in ("--filter", text)]
        done = inline("commit", "list", str(people), "--json", *flags)
        assert [commit["message"] for commit in done.json["commits"]] == messages

    def test_an_empty_list_is_no_error(self, inline: Program, people: Path) -> None:
        done = inline("commit", "list", str(people), "--filter", "kind=none")
        assert (done.code, done.out, done.err) == (0, "", "")

    def test_show_prints_one_commit(self, omnigraph: Program, people: Path) -> None:
        commit = engine.open(people, read_only=True).history.commits()[1]
        done = omnigraph("commit", "show", commit.commit_id, "--uri", str(people))
        assert (done.code, done.err) == (0, "")
        shown = dict(line.split(": ", 1) for line in done.out.splitlines())
        assert shown["commit"].strip() == commit.commit_id
        assert shown["message"].strip() == "people"
        assert shown["actor"].strip() == "tester"

    def test_show_as_json_is_the_wire_form(self, inline: Program, people: Path) -> None:
        commit = engine.open(people, read_only=True).history.commits()[1]
        done = inline("commit", "show", commit.commit_id, "--uri", str(people), "--json")
        assert done.json == commit.to_json()

    def test_show_of_an_unknown_commit(self, omnigraph: Program, people: Path) -> None:
        done = omnigraph("commit", "show", "0" * 26, "--uri", str(people))
        assert done.code == 1
        assert done.err.startswith("error[commit_not_found]: ")
        assert "omnigraph commit list" in done.err


class TestBranch:
    def test_list_prints_one_name_per_line(self, omnigraph: Program, people: Path) -> None:
        done = omnigraph("branch", "list", "--uri", str(people))
        assert (done.code, done.out, done.err) == (0, "feature/x\nmain\n", "")

    def test_list_as_json_is_the_wire_form(self, inline: Program, people: Path) -> None:
        done = inline("branch", "list", "--uri", str(people), "--json")
        assert done.json == {"branches": ["feature/x", "main"]}

    def test_create_echoes_the_target_and_forks(
        self, omnigraph: Program, tmp_path: Path, schema: str
    ) -> None:
        engine.init(tmp_path / "g", PEOPLE)
        done = omnigraph("branch", "create", "a/b", "--uri", "g")
        assert (done.code, done.out) == (0, "created branch a/b from main\n")
        assert done.err == f"omnigraph branch create → {tmp_path / 'g'} (direct, local)\n"
        create = ["branch", "create", "c", "--from", "a/b", "--uri", "g"]
        done = omnigraph("--quiet", "--as", "me", *create, "--json")
        assert (done.code, done.err) == (0, "")
        uri = str(tmp_path / "g")
        assert done.json == {"uri": uri, "from": "a/b", "name": "c", "actor_id": "me"}
        assert sorted(engine.open(tmp_path / "g").branches.list()) == ["a/b", "c", "main"]

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["feature/x"], "branch_exists"),
            (["new", "--from", "none"], "ref_not_found"),
        ],
    )
    def test_create_refuses(
        self, inline: Program, people: Path, arguments: list[str], code: str
    ) -> None:
        done = inline("branch", "create", *arguments, "--uri", str(people), "--json")
        assert (done.code, done.json["reason"]) == (1, code)


class TestVersion:
    TEXT = f"omnigraph {engine.__version__}\ninternal-schema 4\n"

    @pytest.mark.parametrize("spelling", [["version"], ["--version"], ["-v"], ["branch", "-v"]])
    def test_every_spelling_prints_two_lines(self, omnigraph: Program, spelling: list[str]) -> None:
        done = omnigraph(*spelling)
        assert (done.code, done.out, done.err) == (0, self.TEXT, "")

    def test_json(self, inline: Program) -> None:
        done = inline("version", "--json")
        assert done.json == {"version": engine.__version__, "internal_schema_version": 4}


class TestBadPlaces:
    @pytest.mark.parametrize(
        "verb", [["snapshot"], ["commit", "list"], ["branch", "list", "--uri"]]
    )
    def test_a_place_that_is_no_graph(
        self, inline: Program, tmp_path: Path, verb: list[str]
    ) -> None:
        (tmp_path / "empty").mkdir()
        for place in ("none", "empty"):
            done = inline(*verb, str(tmp_path / place), "--json")
            assert (done.code, done.json["reason"]) == (1, "graph_not_found")
            assert "omnigraph init" in done.json["remedy"]
        assert os.listdir(tmp_path / "empty") == []

    def test_a_directory_that_cannot_be_written(self, omnigraph: Program, schema: str) -> None:
        place, code = "/omnigraph-test/g", "permission_denied"
        if os.geteuid() == 0:
            place, code = "/proc/omnigraph-test/g", "storage_failure"
        done = omnigraph("init", "--schema", schema, place)
        assert done.code == 1
        assert done.err.startswith(f"error[{code}]: ")
        assert not Path(place).parent.exists()
