"""How a function becomes a command.

Owns the wrapping that gives every command the global flags, the capability check, and the two
forms of output. A command function takes a :class:`Call` and its own arguments and returns a
:class:`Result`; it prints nothing. It must never know a particular command, nor how a line is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph.cli import scope
from omnigraph.cli.declared import Parameter, parameters_of
from omnigraph.cli.flags import Flags
from omnigraph.cli.output import Result, print_result, report_interrupt
from omnigraph.cli.quick_start import start_quickly
from omnigraph.cli.scope import Verb
from omnigraph.model.outcome import told
from omnigraph.storage.locations import Location
from omnigraph.transaction.actors import configured_actor

Function = Callable[..., Result]


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation of a command: what the frame already knows about it."""

    verb: Verb
    flags: Flags

    @property
    def actor(self) -> str | None:
        """Who an embedded write is recorded as."""
        return self.flags.actor or configured_actor()

    def address(self, uri: str | None) -> Location:
        """The graph this call is about."""
        if not self.flags.quiet:
            scope.warn_of_unread_config()
        start_quickly()
        return scope.address(self.flags, uri)

    def echo(self, location: Location) -> None:
        """Say on stderr what is about to be changed."""
        if not self.flags.quiet:
            place = "local" if location.is_local else "remote"
            print(f"omnigraph {self.verb.name} → {location.uri} (direct, {place})", file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Command:
    """A function as a command."""

    verb: Verb
    function: Function

    @property
    def name(self) -> str:
        return self.verb.name.rpartition(" ")[2]

    def parameters(self) -> list[Parameter]:
        """What the function takes besides its call."""
        return parameters_of(self.function)

    def run(self, flags: Flags, given: dict[str, Any]) -> int:
        """Run it, print what it found, and return the exit code."""
        self.verb.check(flags)
        with told() as outcome:
            try:
                result = self.function(Call(self.verb, flags), **given)
                print_result(result, as_json=flags.json)
            except KeyboardInterrupt:
                said = outcome if self.verb.writes else None
                return report_interrupt(said, as_json=flags.json)
            return result.exit_code


class Noun:
    """A noun with its verbs, or a ``single`` command."""

    def __init__(self, help: str, *, single: bool = False) -> None:
        self.help = help
        self.single = single
        self.commands: dict[str, Command] = {}


def command(owner: Noun, verb: Verb) -> Callable[[Function], Function]:
    """Register a function as a command of a noun."""

    def register(function: Function) -> Function:
        made = Command(verb, function)
        owner.commands[made.name] = made
        return function

    return register
