"""A fuzz of the command line: documented exit codes, no traceback, no error that is not ours.

Commands, arguments and options are found in the declared tables, so a new one takes part by itself.
Lines run in this process (some also in one of their own). ``OMNIGRAPH_TEST_FUZZ_CALLS`` says how
many (a fifth of it, 300 unless said; 10,000 for a full run), ``OMNIGRAPH_TEST_FUZZ_SEED`` the seed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.application import NOUNS, load_command
from omnigraph.cli.flags import parameters
from omnigraph.cli.main import run
from tests.fuzz.values import odd_text
from tests.graphs import people_graph
from tests.support.inline_tasks import InlineTasks

CALLS = int(os.environ.get("OMNIGRAPH_TEST_FUZZ_CALLS", "1500")) // 5
SEED = int(os.environ.get("OMNIGRAPH_TEST_FUZZ_SEED", "1"))
CALLS_PER_GRAPH = 60
PROCESSES = 6
CALL_S_MAX = 60.0
EXIT_CODES = {0, 1, 2, 4}

NOT_CALLED = {
    "changes follow": "runs until it is interrupted",
    "spark start": "starts Java",
    "spark stop": "ends a server of whoever runs the test",
    "embed": "asks a provider of embeddings",
}
WRITES_FILES = ("target", "to", "uri", "store", "quarantine", "output", "out")
"""Parameters that name a place that is written to."""
QUERY = "query q() { match { $p: Person } return { $p.name } }"
GOOD = {
    "query_string": [QUERY, 'query m() { insert City { name: "X" } }'],
    "schema": ["s.pg"],
    "query": ["q.gq"],
    "data": ["d.jsonl"],
    "mode": ["append", "merge"],
    "branch": ["main", "dev"],
    "name": ["dev", "fresh", "q"],
    "id": ["ana"],
    "entity": ["node"],
    "kind": ["node"],
    "type_name": ["Person"],
    "commit_id": ["{head}"],
    "old": ["main"],
    "new": ["dev"],
    "source": ["dev"],
    "algorithm": ["degrees", "pagerank"],
    "params": ["{}", '{"n": "ana"}'],
    "limit": ["1", "10"],
    "keep": ["1"],
    "older_than": ["1d"],
    "property": ["name"],
    "engine": ["local"],
    "format": ["table", "csv", "jsonl", "kv"],
}


def commands() -> list[tuple[list[str], Any]]:
    """Every command of the program, with the words that name it."""
    found: list[tuple[list[str], Any]] = []
    for noun, (module, _) in NOUNS.items():
        loaded = load_command(module)
        verbs = getattr(loaded, "commands", None)
        if verbs is None:
            found.append(([noun], loaded))
        else:
            found += [([noun, verb], command) for verb, command in verbs.items()]
    return found


def own_parameters(command: Any) -> list[Any]:
    """The parameters of a command, without the flags that every command takes."""
    shared = {one.name for one in parameters()} | {"version", "help"}
    return [one for one in command.params if one.name not in shared]


def line(found: tuple[list[str], Any], graph: Path, chance: random.Random) -> list[str]:
    """A command line: its name, some of its options, its arguments."""
    words, command = list(found[0]), found[1]
    named = False
    for parameter in own_parameters(command):
        flags = parameter.opts if parameter.param_type_name == "option" else []
        required = parameter.required or not flags
        if parameter.name == "uri":
            named = True
            words += [*(flags[:1] or ()), _value(parameter, graph, chance)]
        elif required or chance.random() < 0.3:
            takes = not getattr(parameter, "is_flag", False)
            words += list(flags[:1])
            words += [_value(parameter, graph, chance)] if takes else []
    if not named:
        words = ["--store", str(graph), *words]
    extra = [["--json"], ["--quiet"], ["--yes"], [odd_text(chance)], ["--actor", odd_text(chance)]]
    if chance.random() < 0.4:
        words += chance.choice(extra)
    return words


def _value(parameter: Any, graph: Path, chance: random.Random) -> str:
    name = parameter.name
    if name in ("uri", "store") and chance.random() < 0.9:
        return str(graph)
    odd = chance.random() < 0.4
    if name in WRITES_FILES:
        here = f"place{chance.randrange(30)}"
        text = odd_text(chance) if odd else here
        return here if text.strip("./ ") == "" else text
    return odd_text(chance) if odd or name not in GOOD else chance.choice(GOOD[name])


def files(folder: Path) -> None:
    (folder / "s.pg").write_text("node Person { name: String @key }")
    (folder / "q.gq").write_text(QUERY)
    (folder / "d.jsonl").write_text('{"type": "City", "data": {"name": "Y"}}\n')


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "sandbox").mkdir()
    files(tmp_path / "sandbox")
    monkeypatch.chdir(tmp_path / "sandbox")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", lambda *_: InlineTasks())

    def hangs(*_: object) -> None:
        raise TimeoutError("the command hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    yield tmp_path / "sandbox"
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    graph = people_graph(tmp_path / "template")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("City", {"name": "Rome"})
    return tmp_path / "template"


def called(words: list[str]) -> tuple[int, str, str]:
    """Run one line here."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    signal.setitimer(signal.ITIMER_REAL, CALL_S_MAX)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"n\n"), "utf-8")
            try:
                code = run(words)
            finally:
                sys.stdin = before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    shown = []
    for stream in (out, err):
        stream.flush()
        shown.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return code, shown[0], shown[1]


def problem_of(words: list[str], code: int, out: str, err: str) -> str | None:
    if code not in EXIT_CODES:
        return f"exit code {code}"
    if "Traceback" in err or "[internal]" in err or '"code": "internal"' in out:
        return (err + out).strip().splitlines()[0] if "Traceback" not in err else "a traceback"
    if code and "--json" in words and "--" not in words and code != 2:
        try:
            json.loads(out)
        except ValueError:
            return "not JSON: " + out[:100]
    return None


def test_every_line_ends_with_a_documented_code_and_an_error_of_ours(
    template: Path, sandbox: Path
) -> None:
    known = [one for one in commands() if " ".join(one[0]) not in NOT_CALLED]
    wrong: Counter[str] = Counter()
    example: dict[str, list[str]] = {}
    for number in range(CALLS):
        chance = random.Random(f"{SEED}.{number}")
        graph = sandbox / f"graph{number // CALLS_PER_GRAPH}"
        if not graph.exists():
            shutil.rmtree(sandbox, ignore_errors=True)
            sandbox.mkdir(exist_ok=True)
            os.chdir(sandbox)
            files(sandbox)
            shutil.copytree(template, graph)
        words = line(chance.choice(known), graph, chance)
        try:
            problem = problem_of(words, *called(words))
        except BaseException as error:
            problem = f"{type(error).__name__}: {error!r:.200}"
        if problem is not None:
            wrong[problem] += 1
            example.setdefault(problem, words)
    report = "\n".join(
        f"{n} × {what}\n    {example[what]!a:.400}" for what, n in wrong.most_common()
    )
    assert not wrong, f"{CALLS} lines\n{report}"


def test_the_same_holds_in_processes_of_their_own(template: Path, sandbox: Path) -> None:
    """With bytes that are not UTF-8, which only a process can be given."""
    known = [one for one in commands() if " ".join(one[0]) not in NOT_CALLED]
    for number in range(PROCESSES):
        chance = random.Random(f"process.{SEED}.{number}")
        words = [
            os.fsencode(word.replace("\0", "0").replace("\ud800", "\udc80"))
            for word in line(chance.choice(known), template, chance)
        ]
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph.cli.main", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        shown = [os.fsdecode(word) for word in words]
        out, err = done.stdout.decode(), done.stderr.decode()
        assert problem_of(shown, done.returncode, out, err) is None, (words, err)


def test_what_is_left_out_exists() -> None:
    names = {" ".join(words) for words, _ in commands()}
    assert set(NOT_CALLED) <= names | {"spark start", "spark stop"}
    assert len(names - set(NOT_CALLED)) > 40
