"""Which flags a command takes, and which graph they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Program

FLAGS = {
    "--server": "http://127.0.0.1:1",
    "--cluster": "somewhere",
    "--graph": "g",
    "--store": "somewhere",
    "--as": "me",
    "--profile": "p",
}
DATA = {"--server", "--graph", "--store", "--profile"}
VERBS: dict[str, tuple[list[str], str, set[str]]] = {
    "init": (["--schema", "f.pg", "g"], "direct (storage-native)", set()),
    "snapshot": ([], "data", DATA | {"--as"}),
    "commit list": ([], "data", DATA),
    "commit show": (["id"], "data", DATA),
    "commit changes": (["id"], "data", DATA),
    "changes poll": ([], "data", DATA),
    "changes follow": ([], "data", DATA),
    "changes baseline": (["--out", "f"], "data", DATA),
    "history": (["node", "T", "i"], "data", DATA),
    "blame": (["node", "T", "i"], "data", DATA),
    "branch create": (["b"], "data", DATA | {"--as"}),
    "branch list": ([], "data", DATA | {"--as"}),
    "version": ([], "local", set()),
}
REFUSED = [(verb, flag) for verb in VERBS for flag in FLAGS if flag not in VERBS[verb][2]]
TAKEN = [(verb, flag) for verb in VERBS for flag in VERBS[verb][2]]


class TestCapabilities:
    @pytest.mark.parametrize(("verb", "flag"), sorted(REFUSED))
    def test_a_flag_that_does_not_apply_is_refused(
        self, inline: Program, verb: str, flag: str
    ) -> None:
        arguments, kind, _ = VERBS[verb]
        done = inline(*verb.split(), *arguments, flag, FLAGS[flag])
        assert done.code == 1
        first, second = done.err.splitlines()
        expected = rf"error\[bad_request\]: `{verb}` is a {re.escape(kind)} command; {flag} .+ "
        assert re.fullmatch(expected + r"and does not apply\.", first)
        assert second.startswith("remedy: ")

    @pytest.mark.parametrize(("verb", "flag"), sorted(TAKEN))
    def test_a_flag_that_applies_is_not(self, inline: Program, verb: str, flag: str) -> None:
        arguments, _, _ = VERBS[verb]
        done = inline(*verb.split(), *arguments, flag, FLAGS[flag])
        assert done.code == 1
        assert "does not apply" not in done.err

    def test_the_first_of_several_is_named(self, inline: Program) -> None:
        order = ["--server", "--cluster", "--graph", "--store", "--as", "--profile"]
        for position, first in enumerate(order):
            given = [part for flag in reversed(order[position:]) for part in (flag, FLAGS[flag])]
            assert f"command; {first} " in inline("version", *given).err


class TestAddressing:
    def test_the_store_flag_names_a_graph(self, inline: Program, people: Path) -> None:
        assert inline("branch", "list", "--store", str(people)).out == "feature/x\nmain\n"

    def test_a_file_uri_names_a_graph(self, inline: Program, people: Path) -> None:
        uri = people.as_uri()
        assert inline("branch", "list", "--uri", uri).out == "feature/x\nmain\n"

    def test_a_relative_path_names_a_graph(
        self, inline: Program, people: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(people.parent)
        done = inline("branch", "list", "--uri", f"./x/../{people.name}")
        assert done.out == "feature/x\nmain\n"

    @pytest.mark.parametrize(
        ("arguments", "code", "says", "remedy"),
        [
            ([], "bad_request", "no graph addressed", "--store"),
            (["g", "--store", "h"], "bad_request", "a URI and --store", "Keep one"),
            (["--store", "g", "--server", "h"], "bad_request", "--store and --server", "Keep one"),
            (["g", "--graph", "h"], "bad_request", "--graph", "Leave --graph out"),
            (["--graph", "h"], "bad_request", "--graph", "--server"),
            (["http://host/g"], "unsupported_location", "http://", "--server"),
            (["https://host/g"], "unsupported_location", "https://", "--server"),
            (["--store", "ftp://host/g"], "unsupported_location", "ftp://", "s3://"),
            (["--server", "http://host"], "not_available", "--server", "--store"),
            (["--profile", "p"], "not_available", "profile 'p'", "--store"),
            ([""], "unsupported_location", "no location", "path"),
        ],
    )
    def test_what_cannot_be_addressed_is_explained(
        self, inline: Program, arguments: list[str], code: str, says: str, remedy: str
    ) -> None:
        done = inline("snapshot", *arguments, "--json")
        assert (done.code, done.json["reason"]) == (1, code)
        assert says in done.json["error"]
        assert remedy in done.json["remedy"]

    def test_the_profile_of_the_environment_counts(
        self, inline: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMNIGRAPH_PROFILE", "staging")
        done = inline("snapshot", "--json")
        assert done.json["reason"] == "not_available"
        assert "staging" in done.json["error"]

    def test_an_explicit_graph_beats_the_profile_of_the_environment(
        self, inline: Program, people: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMNIGRAPH_PROFILE", "staging")
        assert inline("snapshot", str(people)).code == 0

    def test_an_empty_actor_is_refused(self, inline: Program, people: Path) -> None:
        create = ["branch", "create", "x", "--uri", str(people), "--as", " "]
        done = inline(*create)
        assert done.code == 1
        assert "--as is empty" in done.err
        assert "x" not in inline("branch", "list", "--uri", str(people)).out.split()

    def test_a_configuration_file_is_not_ignored_silently(
        self, inline: Program, people: Path, own_home: Path
    ) -> None:
        own_home.mkdir()
        (own_home / "config.yaml").write_text("operator: {actor: me}\n")
        done = inline("snapshot", str(people))
        assert done.code == 0
        assert re.match(r"warning: .*config\.yaml is not read", done.err)
        assert inline("snapshot", str(people), "--quiet").err == ""
