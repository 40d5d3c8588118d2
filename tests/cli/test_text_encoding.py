"""Texts at the door and on the screen: what is not UTF-8 is refused, what is not printable escaped.

A byte that is not UTF-8 reaches Python as a lone surrogate; it could be stored and never be shown
again. A terminal escape in a stored value must not reach the terminal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Program
from tests.graphs import people_graph

from omnigraph import Graph
from omnigraph.cli.output import columns, one_line, printable
from omnigraph.errors import InvalidInput
from omnigraph.model.requests import CommitOptions
from omnigraph.transaction.prepared import WriteInfo

NOT_UTF8 = b"bad \xff byte"
SURROGATE = os.fsdecode(NOT_UTF8)
ESCAPES = "\x1b[31mred\x1b[0m \x9b2J \u202eturned\u202c \x07"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return people_graph(tmp_path / "people")


def write(graph: Graph, name: str, **info: Any) -> None:
    with graph.write(**info) as w:
        w.insert("City", {"name": name})


def stored_anyway(graph: Graph, monkeypatch: pytest.MonkeyPatch, name: str, **info: Any) -> None:
    """Store a text that older programs did not refuse."""
    with monkeypatch.context() as patch:
        for unchecked in (WriteInfo, CommitOptions):
            patch.setattr(unchecked, "__post_init__", lambda self: None)
        write(graph, name, **info)


DOORS: dict[str, Callable[[Graph, Any], Any]] = {
    "message": lambda g, text: write(g, "X", message=text),
    "actor": lambda g, text: write(g, "X", actor=text),
    "metadata": lambda g, text: write(g, "X", metadata={"a": text}),
    "name of metadata": lambda g, text: write(g, "X", metadata={text: "a"}),
    "nested metadata": lambda g, text: write(g, "X", metadata={"a": ["b", {"c": text}]}),
    "idempotency key": lambda g, text: g.mutate(
        'query q() { insert City { name: "X" } }', idempotency_key=text
    ),
    "branch": lambda g, text: g.branches.create(text),
    "tag": lambda g, text: g.tags.create(text),
    "message of a tag": lambda g, text: g.tags.create("t", message=text),
    "actor of a tag": lambda g, text: g.tags.create("t", actor=text),
    "message of a merge": lambda g, text: g.merge("main", "main", message=text),
    "actor of a revert": lambda g, text: g.revert(g.history.commits()[0].commit_id, actor=text),
    "actor of a repair": lambda g, text: g.maintenance.repair(actor=text),
    "message of a schema": lambda g, text: g.apply_schema("node City { x: I32? }", message=text),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("text", [SURROGATE, "a\0b", "\ud800"], ids=["byte", "NUL", "surrogate"])
def test_texts_that_cannot_be_shown_are_refused_and_nothing_is_written(
    graph: Graph, door: str, text: str
) -> None:
    before = graph.history.commits()
    with pytest.raises(InvalidInput) as refused:
        DOORS[door](graph, text)
    str(refused.value).encode()
    refused.value.remedy.encode()
    assert graph.history.commits() == before


@pytest.mark.parametrize(
    "metadata", [5, "text", [("a", "b")], {1: "a"}, {"a": object()}, {"a": {1}}]
)
def test_metadata_that_is_not_json_is_refused(graph: Graph, metadata: Any) -> None:
    with pytest.raises(InvalidInput):
        write(graph, "X", metadata=metadata)
    with pytest.raises(InvalidInput):
        graph.load([{"type": "City", "data": {"name": "X"}}], mode="append", metadata=metadata)


@pytest.mark.parametrize("metadata", [{"a": float("nan")}, {"a": float("inf")}])
def test_metadata_holds_no_numbers_that_json_has_not(graph: Graph, metadata: Any) -> None:
    with pytest.raises(InvalidInput):
        write(graph, "X", metadata=metadata)


def test_texts_that_can_be_shown_are_stored_as_they_are(graph: Graph) -> None:
    write(graph, "X", message=ESCAPES + "\nand a line", actor="é😀", metadata={"n": "1"})
    commit = graph.history.commits()[0]
    assert (commit.message, commit.actor) == (ESCAPES + "\nand a line", "é😀")


def test_a_byte_that_is_not_utf8_on_the_command_line_is_a_typed_error(
    graph: Graph, compiled: dict[str, str]
) -> None:
    query = 'query q() { insert City { name: "X" } }'
    words: list[bytes | str] = [sys.executable, "-m", "omnigraph.cli.main", "mutate"]
    done = subprocess.run(
        [*words, "--uri", graph.uri, "-e", query, "-m", NOT_UTF8],
        env=compiled,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"error[bad_request]: `message` is not valid UTF-8" in done.stderr


# -- the screen ------------------------------------------------------------------------------------


def unprintable(text: str) -> list[str]:
    return [c for c in text if not c.isprintable() and c not in "\n\t"]


SHOWING: dict[str, tuple[str, ...]] = {
    "commit list": ("commit", "list"),
    "commit list as a drawing": ("commit", "list", "--dag"),
    "changes": ("changes", "poll", "--start", "beginning"),
    "history": ("history", "node", "City", ESCAPES),
    "blame": ("blame", "node", "City", ESCAPES),
    "diff": ("diff", "{first}", "main"),
    "query": ("query", "-e", "query q() { match { $c: City } return { $c.name } }"),
    "query by rows": (
        "query",
        "--format",
        "kv",
        "-e",
        "query q() { match { $c: City } return { $c } }",
    ),
    "errors": ("branch", "delete", ESCAPES),
}


@pytest.mark.parametrize("what", SHOWING)
def test_nothing_that_a_graph_holds_reaches_the_terminal_raw(
    graph: Graph, inline: Program, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    stored_anyway(graph, monkeypatch, ESCAPES, message=SURROGATE + ESCAPES, actor=ESCAPES)
    first = graph.history.commits()[-1].commit_id
    words = [word.replace("{first}", first) for word in SHOWING[what]]
    done = inline("--store", graph.uri, *words)
    shown = done.out + done.err
    assert "internal" not in shown
    assert "\\u001b" in shown or "\\x1b" in shown
    assert unprintable(shown) == []


@pytest.mark.parametrize("words", [("commit", "list"), ("tag", "list"), ("branch", "list")])
def test_json_stays_json(
    graph: Graph, inline: Program, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    stored_anyway(graph, monkeypatch, "X", message=SURROGATE + ESCAPES)
    done = inline("--store", graph.uri, *words, "--json")
    assert done.code == 0
    body = done.json
    if words == ("commit", "list"):
        assert body["commits"][0]["message"] == SURROGATE + ESCAPES


def test_csv_keeps_values_as_they_are(graph: Graph, inline: Program) -> None:
    write(graph, ESCAPES)
    query = "query q() { match { $c: City } return { $c.name } }"
    done = inline("--store", graph.uri, "query", "-e", query, "--format", "csv")
    assert ESCAPES in done.out


def test_what_is_escaped_is_valid_json() -> None:
    everything = [chr(code) for code in range(0x110000)]
    shown = printable(json.dumps(everything, ensure_ascii=False))
    assert json.loads(shown) == everything
    assert not set(map(ord, shown)) & {*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)}
    assert one_line("a\nb\r\tc") == "a\\nb\\r\tc"
    assert columns([("a\nb", "c")]) == ["a\\nb  c"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("words", [("commit", "list"), ("export",), ("snapshot",), ("--help",)])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_full_device_is_a_typed_error(
    people: Path, compiled: dict[str, str], words: tuple[str, ...], as_json: bool
) -> None:
    where = () if words == ("--help",) else (str(people), *(("--json",) if as_json else ()))
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph.cli.main", *words, *where],
            env=compiled,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert b"error[output_failed]: standard output cannot be written: No space left" in done.stderr
    assert b"Traceback" not in done.stderr
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "omnigraph.cli.main", *words, *where]
        both = subprocess.run(command, env=compiled, stdout=full, stderr=full, check=False)
    assert both.returncode == 1
