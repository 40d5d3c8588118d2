"""Plain command lines, read without typer.

Most lines are a noun, a verb, flags with texts after them and a few arguments. Those are read here,
in a fraction of the time that importing typer takes. Whatever is not as plain as that is left to
typer, which knows what to say about it: a line that both can read means the same to both.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from omnigraph.cli import flags as global_flags
from omnigraph.cli.declared import REQUIRED, Parameter
from omnigraph.cli.flags import Flags
from omnigraph.cli.frame import Command, Noun
from omnigraph.cli.main import NOUNS

Kinds: TypeAlias = tuple[Any, ...]

_TEXTS: Final[Kinds] = (str, str | None)
_LISTS: Final[Kinds] = (list[str], list[str] | None)


class NotPlain(Exception):
    """The line is one for typer."""


@dataclass(frozen=True, slots=True)
class Line:
    """A command with what it was given."""

    command: Command
    flags: Flags
    given: dict[str, Any]


def read_line(words: Sequence[str]) -> Line | None:
    """What a command line says, if it is a plain one."""
    try:
        return _read(list(words))
    except NotPlain:
        return None


def _read(words: list[str]) -> Line:
    everywhere = _Reader(global_flags.parameters())
    flags, words = _flags_before(everywhere, words)
    name, words = words[0], words[1:]
    if name not in NOUNS:
        raise NotPlain
    noun: Noun = importlib.import_module(f"omnigraph.cli.{NOUNS[name][0]}").app
    if noun.single:
        (command,) = noun.commands.values()
    else:
        more, words = _flags_before(everywhere, words)
        flags = flags.merged(more)
        if words[0] not in noun.commands:
            raise NotPlain
        command, words = noun.commands[words[0]], words[1:]
    given = _Reader([*command.parameters(), *global_flags.parameters()]).read(words)
    return Line(command, flags.merged(Flags.taken_from(given)), given)


def _flags_before(everywhere: _Reader, words: list[str]) -> tuple[Flags, list[str]]:
    """The flags before the next name, and the words from there on."""
    length = everywhere.flags_length(words)
    if length >= len(words):
        raise NotPlain
    given = Flags.taken_from(everywhere.read(words[:length]))
    return Flags().merged(given), words[length:]


class _Reader:
    """Reads words by the parameters of a function."""

    def __init__(self, parameters: list[Parameter]) -> None:
        self._defaults: dict[str, Any] = {}
        self._kinds: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._places: list[str] = []
        for parameter in parameters:
            self._defaults[parameter.name] = parameter.default
            self._kinds[parameter.name] = parameter.kind
            flags = parameter.declared.flags
            if flags:
                self._names.update(dict.fromkeys(flags, parameter.name))
            else:
                self._places.append(parameter.name)

    def flags_length(self, words: list[str]) -> int:
        """How many words belong to the flags before anything else."""
        at = 0
        while at < len(words) and words[at].startswith("-"):
            flag, is_joined, _ = words[at].partition("=")
            at += 1 if is_joined or self._kinds[self._name(flag)] is bool else 2
        return at

    def read(self, words: list[str]) -> dict[str, Any]:
        """The value of every parameter."""
        found: dict[str, Any] = {}
        places, rest = iter(self._places), iter(words)
        for word in rest:
            if word.startswith("-"):
                self._take_flag(word, rest, found)
            else:
                self._take(next(places, ""), word, found, _TEXTS)
        every = {**self._defaults, **found}
        if any(value is REQUIRED for value in every.values()):
            raise NotPlain
        return every

    def _take_flag(self, word: str, rest: Iterator[str], found: dict[str, Any]) -> None:
        flag, is_joined, text = word.partition("=")
        name = self._name(flag)
        if self._kinds[name] is bool and not is_joined:
            self._take(name, True, found, (bool,))
            return
        value = text if is_joined else next(rest, "-")
        if value.startswith("-") or (is_joined and not flag.startswith("--")):
            raise NotPlain
        if self._kinds[name] in _LISTS:
            found.setdefault(name, []).append(value)
        else:
            self._take(name, value, found, _TEXTS)

    def _take(self, name: str, value: object, found: dict[str, Any], kinds: Kinds) -> None:
        if name in found or self._kinds.get(name) not in kinds:
            raise NotPlain
        found[name] = value

    def _name(self, flag: str) -> str:
        if flag not in self._names:
            raise NotPlain
        return self._names[flag]
