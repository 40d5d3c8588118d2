"""The commands that look back: changes, history, blame, and the log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Program
from tests.graphs import people_graph

import omnigraph as engine
from omnigraph import Graph
from omnigraph.cli.versions.dag import draw


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "g")


@pytest.fixture
def uri(graph: Graph) -> str:
    return graph.uri


class TestChanges:
    def test_poll_shows_commits_and_prints_the_cursor_last(
        self, inline: Program, graph: Graph, uri: str
    ) -> None:
        done = inline("changes", "poll", "--uri", uri, "--start", "beginning")

        lines = done.out.splitlines()
        assert sorted(line for line in lines if line.startswith("  + node")) == [
            "  + node City Oslo",
            "  + node Person ana",
            "  + node Person bo",
        ]
        cursor = lines[-1].removeprefix("cursor: ")
        assert graph.history.changes(cursor=cursor).caught_up

    def test_poll_puts_pages_together(self, inline: Program, graph: Graph, uri: str) -> None:
        start = f"after:{graph.history.commits()[-1].commit_id}"
        done = inline("changes", "poll", "--uri", uri, "--start", start, "--limit", "1", "--json")

        expected = graph.history.changes(start=start, commits_max=1).to_json()
        assert done.json["blocks"] == expected["blocks"]
        assert done.json["cursor"] == expected["cursor"]
        assert done.json["caught_up"] is False

    def test_poll_without_a_place_begins_now(self, inline: Program, uri: str) -> None:
        done = inline("changes", "poll", "--uri", uri, "--json")

        assert done.json["blocks"] == []
        assert done.json["caught_up"] is True

    def test_a_rejected_cursor_is_an_error(self, inline: Program, uri: str) -> None:
        done = inline("changes", "poll", "--uri", uri, "--cursor", "")

        assert done.code == 1
        assert done.err.startswith(
            "error[cursor_rejected]: the cursor or page token cannot be used: "
        )

    def test_follow_prints_pages_as_they_come(
        self, graph: Graph, uri: str, compiled: dict[str, str]
    ) -> None:
        command = [sys.executable, "-m", "omnigraph.cli.main", "changes", "follow", "--uri", uri]
        with subprocess.Popen(
            [*command, "--json", "--interval", "0.05"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**compiled, "PYTHONUNBUFFERED": ""},
            text=True,
        ) as follower:
            assert follower.stdout is not None
            first = json.loads(follower.stdout.readline())
            with graph.write() as w:
                w.insert("Person", {"name": "new"})
            second = json.loads(follower.stdout.readline())
            os.kill(follower.pid, signal.SIGINT)
            _, said = follower.communicate(timeout=30)

        assert first["blocks"] == []
        assert [c["id"] for c in second["blocks"][0]["changes"]] == ["new"]
        # Interrupted right after printing, it may name the page before: twice, but never lost.
        assert said.strip() in {f"cursor: {page['cursor']}" for page in (first, second)}

    def test_baseline_writes_the_whole_file_and_prints_the_handshake(
        self, inline: Program, graph: Graph, uri: str, tmp_path: Path
    ) -> None:
        out = tmp_path / "base.jsonl"
        done = inline("changes", "baseline", "--uri", uri, "--out", str(out), "--json")

        lines = out.read_bytes().splitlines(keepends=True)
        assert b"".join(lines[:-1]) == b"".join(graph.export())
        assert json.loads(lines[-1])["baseline"] == done.json["baseline"]
        assert graph.history.changes(cursor=done.json["baseline"]["resume_cursor"]).caught_up
        assert not out.with_name("base.jsonl.part").exists()

    def test_baseline_leaves_the_old_file_when_it_cannot_write(
        self, inline: Program, uri: str, tmp_path: Path
    ) -> None:
        done = inline("changes", "baseline", "--uri", uri, "--out", str(tmp_path / "no" / "b"))

        assert done.code == 1
        assert done.err.startswith("error[bad_request]: cannot write ")

    def test_baseline_of_two_processes_at_once_is_refused(
        self, inline: Program, uri: str, tmp_path: Path
    ) -> None:
        import fcntl

        out = tmp_path / "base.jsonl"
        with out.with_name("base.jsonl.lock").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = inline("changes", "baseline", "--uri", uri, "--out", str(out))

        assert done.code == 1
        assert "another process is writing" in done.err
        assert not out.exists()


class TestCommitChanges:
    def test_everything_or_a_page(self, inline: Program, graph: Graph, uri: str) -> None:
        made = graph.history.commits()[1].commit_id

        done = inline("commit", "changes", made, "--uri", uri, "--limit", "1", "--json")
        assert done.json == graph.history.commit_changes(made).to_json()

        token = graph.history.commit_changes(made, limit=1).next_page_token
        assert token is not None
        page = inline(
            "commit", "changes", made, "--uri", uri, "--limit", "1", "--page-token", token, "--json"
        )
        assert len(page.json["changes"]) == 1
        assert "next_page_token" in page.json

    def test_filters(self, inline: Program, graph: Graph, uri: str) -> None:
        made = graph.history.commits()[1].commit_id

        done = inline("commit", "changes", made, "--uri", uri, "--type", "City")

        assert done.out.splitlines()[1:] == ["  + node City Oslo"]

    def test_the_first_commit_is_refused(self, inline: Program, graph: Graph, uri: str) -> None:
        done = inline(
            "commit", "changes", graph.history.commits()[-1].commit_id, "--uri", uri, "--json"
        )

        assert done.code == 1
        assert done.json["reason"] == "change_diff_refusal"
        assert done.json["details"]["reason"] == "parentless_commit"


class TestEntities:
    def test_history(self, inline: Program, graph: Graph, uri: str) -> None:
        with graph.write(message="birthday", actor="eve") as w:
            w.update("Person", "ana", {"age": 31})

        text = inline("history", "node", "Person", "ana", "--uri", uri)
        data = inline("history", "node", "Person", "ana", "--uri", uri, "--json")

        assert text.out.splitlines()[1:3] == ["  update", "    age: 30 -> 31"]
        assert " by eve at " in text.out.splitlines()[0]
        assert data.json["events"] == [e.to_json() for e in graph.history.entity("Person", "ana")]

    def test_pages_of_a_history(self, inline: Program, graph: Graph, uri: str) -> None:
        with graph.write() as w:
            w.update("Person", "ana", {"age": 31})

        first = inline("history", "node", "Person", "ana", "--uri", uri, "--limit", "1", "--json")
        token = first.json["next_page_token"]
        rest = inline(
            "history", "node", "Person", "ana", "--uri", uri, "--page-token", token, "--json"
        )

        assert [e["op"] for e in first.json["events"] + rest.json["events"]] == ["update", "insert"]
        assert "next_page_token" not in rest.json

    def test_blame(self, inline: Program, graph: Graph, uri: str) -> None:
        with graph.write(message="birthday", actor="eve") as w:
            w.update("Person", "ana", {"age": 31})

        done = inline("blame", "node", "Person", "ana", "--uri", uri)

        assert [line.split()[:2] for line in done.out.splitlines()] == [
            ["age", "31"],
            ["name", "ana"],
        ]
        assert done.out.splitlines()[0].endswith("eve     birthday")
        data = inline("blame", "node", "Person", "ana", "--uri", uri, "--json")
        assert data.json["properties"] == [
            i.to_json() for i in graph.history.blame("Person", "ana")
        ]

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (["history", "node", "Person", "nobody"], "entity_not_found"),
            (["blame", "node", "Person", "nobody"], "entity_not_found"),
            (["history", "node", "Knows", "x"], "type_not_found"),
            (["blame", "thing", "Person", "ana"], "bad_request"),
        ],
    )
    def test_bad_input(self, inline: Program, uri: str, words: list[str], code: str) -> None:
        done = inline(*words, "--uri", uri)

        assert done.code == 1
        assert done.err.startswith(f"error[{code}]: ")


class TestLog:
    def test_pages_and_filters(self, inline: Program, graph: Graph, uri: str) -> None:
        ids = [commit.commit_id for commit in graph.history.commits()]

        def listed(*flags: str) -> list[str]:
            done = inline("commit", "list", uri, "--json", *flags)
            return [commit["graph_commit_id"] for commit in done.json["commits"]]

        assert listed("--limit", "1", "--after", ids[0]) == ids[1:2]
        assert listed("--actor", "tester") == ids[1:]
        assert listed("--message", "tie") == ids[:1]
        assert listed("--type", "Knows") == [ids[0], ids[2]]
        assert listed("--until", "2020-01-01") == []

    def test_tags_are_shown_with_their_commits(
        self, inline: Program, graph: Graph, uri: str
    ) -> None:
        graph.tags.create("v1", graph.history.commits()[1].commit_id)
        graph.tags.create("first", graph.history.commits()[1].commit_id)

        lines = inline("commit", "list", uri).out.splitlines()
        data = inline("commit", "list", uri, "--json").json["commits"]

        assert [line.endswith("(first, v1)  people") for line in lines] == [False, True, False]
        assert [commit.get("tags") for commit in data] == [None, ["first", "v1"], None]

    @pytest.mark.parametrize("flag", ["--graph", "--dag"])
    def test_the_drawing(self, inline: Program, graph: Graph, uri: str, flag: str) -> None:
        graph.branches.create("dev")
        with graph.write("dev", message="on dev") as w:
            w.insert("Person", {"name": "cy"})
        with graph.write(message="on main") as w:
            w.insert("Person", {"name": "di"})
        graph.merge("dev")

        done = inline("commit", "list", uri, flag)

        shapes = [line.split("  ")[0] for line in done.out.splitlines()]
        assert shapes == ["*", "|\\", "* |", "| *", "|/", "*", "*", "*"]

    def test_a_graph_of_a_server_is_still_named_by_graph(self, inline: Program, uri: str) -> None:
        done = inline("commit", "list", uri, "--graph", "people")

        assert done.code == 1
        assert "--graph picks a graph" in done.err

    def test_a_drawing_takes_no_filter(self, inline: Program, uri: str) -> None:
        done = inline("commit", "list", uri, "--graph", "--actor", "x")

        assert done.code == 1
        assert "--dag cannot be combined with filters" in done.err


class TestDrawing:
    def shape(self, *commits: tuple[str, str]) -> list[str]:
        return list(draw((id, tuple(parents), id) for id, parents in commits))

    def test_a_line(self) -> None:
        assert self.shape(("b", "a"), ("a", "")) == ["*  b", "*  a"]

    def test_a_merge_into_the_line_it_left(self) -> None:
        assert self.shape(("m", "ts"), ("s", "a"), ("t", "a"), ("a", "")) == [
            "*  m",
            "|\\",
            "| *  s",
            "* |  t",
            "|/",
            "*  a",
        ]

    def test_criss_cross(self) -> None:
        found = self.shape(("x", "pq"), ("p", "ab"), ("q", "ba"), ("b", "r"), ("a", "r"), ("r", ""))
        assert found == [
            "*  x",
            "|\\",
            "* |  p",
            "|-|\\",
            "| * |  q",
            "|/| |",
            "| |/",
            "| *  b",
            "* |  a",
            "|/",
            "*  r",
        ]

    def test_a_line_across_another(self) -> None:
        assert self.shape(("z", "yc"), ("y", "xb"), ("c", "a")) == [
            "*  z",
            "|\\",
            "* |  y",
            "|-|\\",
            "| * |  c",
        ]


def test_every_command_opens_the_graph_for_reading_only(
    inline: Program, uri: str, graph: Graph
) -> None:
    made = graph.history.commits()[0].commit_id
    before = engine.open(uri, read_only=True).snapshot()
    for words in (
        ["changes", "poll", "--uri", uri],
        ["commit", "list", uri],
        ["commit", "changes", made, "--uri", uri],
        ["history", "node", "Person", "ana", "--uri", uri],
        ["blame", "node", "Person", "ana", "--uri", uri],
    ):
        assert inline(*words).code == 0, words
    assert graph.snapshot() == before
