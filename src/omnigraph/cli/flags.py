"""The global flags, which every group and every command accepts.

Owns their names, their help, and merging the flags of a group with those of its command. It must
never act on them: what a flag means for a command is decided in :mod:`omnigraph.cli.addressing`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import Parameter
from typing import Annotated, Any

import typer


@dataclass(frozen=True, slots=True)
class Flags:
    """The values of the global flags; of a flag that is given twice, the innermost one is used."""

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
    """The flags as parameters of a command; only the top-level help shows them."""

    def text(name: str, flag: str, metavar: str, help: str) -> Parameter:
        how = typer.Option(flag, metavar=metavar, help=help, hidden=hidden, show_default=False)
        return _parameter(name, Annotated[str | None, how], None)

    def switch(name: str, help: str, **settings: Any) -> Parameter:
        how = typer.Option(f"--{name}", help=help, show_default=False, **settings)
        return _parameter(name, Annotated[bool, how], False)

    return [
        text("actor", "--as", "ACTOR", "The actor that the commit records."),
        text("server", "--server", "NAME|URL", "Use a graph behind a server."),
        text("graph", "--graph", "ID", "A graph of the server or cluster."),
        text("profile", "--profile", "NAME", "Use a configured target."),
        text("store", "--store", "URI", "Use the graph at this location."),
        text("cluster", "--cluster", "DIR|URI", "Use a graph of this cluster."),
        switch("yes", "Answer yes to every question.", hidden=hidden),
        switch("quiet", "Do not print which graph is written to.", hidden=hidden),
        switch("json", "Print JSON instead of text."),
    ]


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
