"""Plain lines are read without typer, and mean the same to both."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from omnigraph.cli.application import run_application
from omnigraph.cli.declared import REQUIRED
from omnigraph.cli.direct import read_line
from omnigraph.cli.flags import Flags
from omnigraph.cli.frame import Command, Noun
from omnigraph.cli.main import NOUNS

Ran = list[tuple[str, Flags, dict[str, Any]]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """What typer would have run."""
    found: Ran = []

    def run(self: Command, flags: Flags, given: dict[str, Any]) -> int:
        found.append((self.verb.name, flags, given))
        return 0

    monkeypatch.setattr(Command, "run", run)
    return found


def lines(name: str) -> Iterator[list[str]]:
    """For every command of a noun: what it must be given, and each thing it may be given."""
    noun: Noun = import_module(f"omnigraph.cli.{NOUNS[name][0]}").app
    for command in noun.commands.values():
        needed = [name] if noun.single else [name, command.name]
        more = []
        for parameter in command.parameters():
            value = [] if parameter.kind is bool else ["7"]
            flags = [part for flag in parameter.declared.flags for part in flag.split("/")]
            if parameter.default is REQUIRED:
                needed += [*flags[:1], *value]
            else:
                more += [[flag, *value] for flag in flags or [""]]
        yield needed
        for given in more:
            yield [*needed, *filter(None, given)]


@pytest.mark.parametrize("name", NOUNS)
def test_every_option_of_every_command_means_the_same_to_both(name: str, ran: Ran) -> None:
    read = 0
    for line in lines(name):
        directly = read_line(line)
        ran.clear()
        assert run_application(line, as_json=False) == 0, line
        if directly is not None:
            read += 1
            assert ran == [(directly.command.verb.name, directly.flags, directly.given)], line
    assert read or name in ("fmt", "restore"), "those two take any number of arguments"


@pytest.mark.parametrize(
    "line",
    [
        ["--json", "query", "--uri", "g", "-e", "q", "--params", "{}"],
        ["query", "-e", "q", "--store=g", "name", "--quiet"],
        ["query", "--uri=g", "--query-string=a=b"],
        ["query", "--uri", "", "-e", "q"],
        ["--server", "", "query", "--store", "g", "-e", "q", "--as="],
        ["--as", "", "branch", "--profile=", "list", "--cluster", ""],
        ["--store", "a", "branch", "--store", "b", "list", "--json"],
        ["--quiet", "--as=me", "branch", "--as", "you", "delete", "x", "--store", "g"],
        ["commit", "changes", "x", "--kind", "node", "--kind", "edge"],
    ],
)
def test_flags_anywhere_joined_values_and_repeated_options_are_plain(
    line: list[str], ran: Ran
) -> None:
    directly = read_line(line)
    assert directly is not None
    assert run_application(line, as_json=False) == 0
    assert ran == [(directly.command.verb.name, directly.flags, directly.given)]


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["--help"],
        ["query", "--help"],
        ["query", "-h"],
        ["--version"],
        ["--json"],
        ["--store"],
        ["nothing"],
        ["read", "-e", "q"],
        ["branch"],
        ["branch", "nothing"],
        ["query", "--nothing"],
        ["query", "-e"],
        ["query", "-e", "--json"],
        ["query", "-eq"],
        ["query", "-e=q"],
        ["query", "-e", "q", "-e", "r"],
        ["query", "--json=yes"],
        ["query", "--json", "--json"],
        ["query", "a", "b"],
        ["query", "--", "a"],
        ["query", "-"],
        ["commit", "list", "--limit", "3"],
        ["init", "g"],
    ],
)
def test_anything_else_is_left_to_typer(line: list[str]) -> None:
    assert read_line(line) is None
