"""What every command has in common: flags anywhere, help, errors, streams, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Program

from omnigraph.cli.application import NOUNS
from omnigraph.cli.graph import snapshot
from omnigraph.cli.output import columns
from omnigraph.cli.versions import branch
from omnigraph.errors import PreconditionFailed

HEAVY = b"lance pyarrow numpy pandas pyspark"


class TestFlagsAnywhere:
    @pytest.mark.parametrize("position", range(3))
    @pytest.mark.parametrize("spelling", [["--store", "{}"], ["--store={}"]])
    def test_a_global_flag_may_stand_before_between_and_after(
        self, inline: Program, people: Path, position: int, spelling: list[str]
    ) -> None:
        line = ["branch", "list"]
        line[position:position] = [part.format(people) for part in spelling]
        assert inline(*line).out == "feature/x\nmain\n"

    @pytest.mark.parametrize("position", range(3))
    def test_json_may_too(self, inline: Program, people: Path, position: int) -> None:
        line = ["branch", "list"]
        line.insert(position, "--json")
        assert inline(*line, "--uri", str(people)).json == {"branches": ["feature/x", "main"]}

    def test_the_innermost_counts(self, inline: Program, people: Path) -> None:
        done = inline("--store", "nowhere", "branch", "list", "--store", str(people))
        assert done.code == 0


class TestHelp:
    def test_the_program_lists_every_noun(self, inline: Program) -> None:
        done = inline("--help")
        assert done.code == 0
        listed = done.out.partition("Commands:")[2].split("\n")
        assert [line.split()[0] for line in listed if line.strip()] == list(NOUNS)

    @pytest.mark.parametrize("noun", NOUNS)
    def test_every_noun_explains_itself(self, inline: Program, noun: str) -> None:
        done = inline(noun, "--help")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"Usage: omnigraph {noun} ")
        assert "--json" in done.out

    def test_the_summary_of_a_noun_is_its_own(self, inline: Program) -> None:
        for noun, app in (("branch", branch.app), ("snapshot", snapshot.app)):
            assert NOUNS[noun][1] == app.info.help

    @pytest.mark.parametrize("line", [[], ["branch"], ["commit", "--quiet"]])
    def test_half_a_command_gets_help_on_stderr(self, inline: Program, line: list[str]) -> None:
        done = inline(*line)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("Usage: omnigraph")

    def test_help_loads_nothing_heavy(self, record_property: pytest.RecordProperty) -> None:
        program = (
            "import sys\n"
            "from omnigraph.cli.main import run\n"
            "code = run(sys.argv[1:])\n"
            "sys.exit(code or ' '.join(sys.modules.keys() & set(sys.stdin.read().split())) or 0)\n"
        )
        for line in (["--help"], ["-h"], ["--version"]):
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", program, *line],
                input=HEAVY,
                capture_output=True,
                check=False,
            )
            record_property(f"{' '.join(line)} wall_ms", (time.perf_counter() - started) * 1000)
            assert (done.returncode, done.stderr) == (0, b""), line


class TestUsageErrors:
    @pytest.mark.parametrize(
        ("line", "says"),
        [
            (["brnch"], "Did you mean 'branch'?"),
            (["branch", "creat"], "Did you mean 'create'?"),
            (["snapshot", "--frob"], "No such option"),
            (["snapshot", "a", "b"], "unexpected extra argument"),
            (["init", "g"], "--schema"),
            (["init", "--schema", "f.pg"], "URI"),
            (["commit", "show"], "ID"),
            (["commit", "list", "--limit", "0"], "--limit"),
            (["commit", "list", "--limit", "many"], "--limit"),
            (["snapshot", "--branch"], "--branch"),
        ],
    )
    def test_the_parser_says_what_is_wrong(
        self, inline: Program, line: list[str], says: str
    ) -> None:
        done = inline(*line)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error[usage]: ")
        assert says in done.err
        assert "\nremedy: See `omnigraph" in done.err
        done = inline(*line, "--json") if line[-1] != "--branch" else inline("--json", *line)
        assert (done.code, done.err) == (2, "")
        assert done.json["reason"] == "usage"
        assert says in done.json["error"]

    def test_a_filter_that_is_none(self, inline: Program, people: Path) -> None:
        for text in ("kind", "colour=red", "metadata.=x", "=x", ""):
            done = inline("commit", "list", str(people), "--filter", text)
            assert done.code == 1
            assert "KEY=VALUE" in done.err


class TestFilesGiven:
    @pytest.mark.parametrize(
        ("content", "says"),
        [(None, "No such file"), (b"\xff\xfe", "not UTF-8"), ("directory", "Is a directory")],
    )
    def test_a_file_that_cannot_be_read(
        self, inline: Program, tmp_path: Path, content: bytes | str | None, says: str
    ) -> None:
        file = tmp_path / "schema.pg"
        if content == "directory":
            file.mkdir()
        elif isinstance(content, bytes):
            file.write_bytes(content)
        done = inline("init", "--schema", str(file), str(tmp_path / "g"), "--json")
        assert (done.code, done.json["reason"]) == (1, "bad_request")
        assert says in done.json["error"]
        assert not (tmp_path / "g").exists()


class TestHowARunEnds:
    def test_an_error_is_typed_text_on_stderr(self, inline: Program) -> None:
        done = inline("snapshot")
        assert (done.code, done.out) == (1, "")
        assert len(done.err.splitlines()) == 2

    def test_an_error_is_json_on_stdout_if_asked(self, inline: Program) -> None:
        done = inline("snapshot", "--json")
        assert (done.code, done.err) == (1, "")
        assert set(done.json) == {"error", "code", "reason", "remedy", "retryable"}

    def test_a_lost_precondition_has_its_own_exit_code(
        self, inline: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lose(*_: object, **__: object) -> None:
            raise PreconditionFailed("A", "B")

        monkeypatch.setattr("omnigraph.graph.connect.open", lose)
        assert inline("snapshot", "somewhere").code == 4

    def test_a_defect_asks_to_be_reported(
        self, inline: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("omnigraph.graph.connect.open", lambda *_, **__: 1 // 0)
        done = inline("snapshot", "somewhere")
        assert done.code == 1
        assert done.err.startswith("error[internal]: ZeroDivisionError")
        assert "Traceback" not in done.err
        assert inline("snapshot", "somewhere", "--json").json["reason"] == "internal"
        monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
        assert "Traceback" in inline("snapshot", "somewhere").err

    def test_an_interrupt_ends_with_130(
        self, inline: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("omnigraph.graph.connect.open", interrupt)
        done = inline("snapshot", "somewhere")
        assert (done.code, done.err) == (130, "interrupted: nothing was written\n")

    def test_a_reader_that_goes_away_is_no_crash(self, people: Path) -> None:
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "omnigraph.cli.main", "commit", "list", str(people)]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (1, b"")

    def test_a_terminal_without_unicode_gets_valid_json(
        self, omnigraph: Program, tmp_path: Path
    ) -> None:
        done = omnigraph("snapshot", "grüße", "--json", PYTHONIOENCODING="ascii")
        assert done.out.isascii()
        assert "grüße" in json.loads(done.out)["error"]


def test_columns_are_aligned() -> None:
    assert columns([("a", "bb", ""), ("ccc", "d", "e")]) == ["a    bb", "ccc  d   e"]
    assert columns([]) == []
