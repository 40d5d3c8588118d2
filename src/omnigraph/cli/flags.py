"""The flags that every command takes, wherever they stand on the line.

Owns their names, their help and how those given to a group and those given to its command become
one value. It must never act on them: what a flag means for a command is decided in
:mod:`omnigraph.cli.addressing`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import Parameter
from typing import Annotated, Any

import typer


@dataclass(frozen=True, slots=True)
class Flags:
    """What was given; the innermost of two spellings of a flag counts."""

    actor: str | None = None
    server: str | None = None
    graph: str | None = None
    profile: str | None = None
    store: str | None = None
    cluster: str | None = None
    yes: bool = False
    quiet: bool = False
    json: bool = False

    def merged(self, inner: Flags) -> Flags:
        return Flags(
            **{f.name: getattr(inner, f.name) or getattr(self, f.name) for f in fields(Flags)}
        )

    @staticmethod
    def taken_from(given: dict[str, Any]) -> Flags:
        """Remove the flags from a command's arguments and return them."""
        return Flags(**{f.name: given.pop(f.name) for f in fields(Flags)})


def parameters(*, hidden: bool = False) -> list[Parameter]:
    """The flags as parameters of a command. They are shown once, in the top-level help."""

    def text(name: str, flag: str, metavar: str, help: str) -> Parameter:
        how = typer.Option(flag, metavar=metavar, help=help, hidden=hidden, show_default=False)
        return _parameter(name, Annotated[str | None, how], None)

    def switch(name: str, help: str, **settings: Any) -> Parameter:
        how = typer.Option(f"--{name}", help=help, show_default=False, **settings)
        return _parameter(name, Annotated[bool, how], False)

    return [
        text("actor", "--as", "ACTOR", "Who is writing; recorded in the commit."),
        text("server", "--server", "NAME|URL", "Use a graph behind a server."),
        text("graph", "--graph", "ID", "Which graph of the server or cluster."),
        text("profile", "--profile", "NAME", "Use a configured target."),
        text("store", "--store", "URI", "Use the graph at this location."),
        text("cluster", "--cluster", "DIR|URI", "Use a graph of this cluster."),
        switch("yes", "Answer yes to every question.", hidden=hidden),
        switch("quiet", "Do not echo what is being written to.", hidden=hidden),
        switch("json", "Print JSON instead of text."),
    ]


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
