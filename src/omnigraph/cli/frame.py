"""How a function becomes a command.

Owns the wrapping that gives every command the global flags, the capability check, and the two
forms of output. A command function takes a :class:`Call` and its own arguments and returns a
:class:`Result`; it prints nothing. It must never know a particular command.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import typer

from omnigraph.cli import flags as global_flags
from omnigraph.cli import scope
from omnigraph.cli.flags import Flags
from omnigraph.cli.output import EXIT_USAGE, Result, print_result
from omnigraph.cli.plain import PlainCommand, PlainGroup
from omnigraph.cli.quick_start import start_quickly
from omnigraph.cli.scope import Verb
from omnigraph.frozen import frozen
from omnigraph.storage.locations import Location


@frozen
class Call:
    """One invocation of a command: what the frame already knows about it."""

    verb: Verb
    flags: Flags

    @property
    def actor(self) -> str | None:
        """Who an embedded write is recorded as."""
        return self.flags.actor

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


Command = Callable[..., Result]


def noun(help: str, *, single: bool = False, **settings: Any) -> typer.Typer:
    """An empty application: a noun with its verbs, or a ``single`` command."""
    app = typer.Typer(
        cls=PlainGroup,
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        **settings,
    )
    if not single:
        app.callback(invoke_without_command=True)(group_callback(help, hidden=True))
    return app


def group_callback(help: str, *, hidden: bool) -> Callable[..., None]:
    """What runs before a command of a group: it collects the group's flags."""

    def collect(ctx: typer.Context, **given: Any) -> None:
        ctx.obj = _outer(ctx).merged(Flags.taken_from(given))
        if ctx.invoked_subcommand is None:
            print(ctx.get_help(), file=sys.stderr)
            raise typer.Exit(EXIT_USAGE)

    _set_signature(collect, [], hidden=hidden)
    collect.__doc__ = help
    return collect


def command(app: typer.Typer, verb: Verb) -> Callable[[Command], Command]:
    """Register a function as a command of ``app``."""

    def register(function: Command) -> Command:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        def run(ctx: typer.Context, **given: Any) -> None:
            flags = _outer(ctx).merged(Flags.taken_from(given))
            verb.check(flags)
            result = function(Call(verb, flags), **given)
            print_result(result, as_json=flags.json)
            if result.exit_code:
                raise typer.Exit(result.exit_code)

        _set_signature(run, own, hidden=True)
        run.__doc__ = function.__doc__
        app.command(verb.name.rpartition(" ")[2], cls=PlainCommand, epilog=EPILOG)(run)
        return function

    return register


EPILOG = "Flags of every command: see `omnigraph --help`."


def _outer(ctx: typer.Context) -> Flags:
    """The flags given to the groups around this command."""
    return ctx.obj if isinstance(ctx.obj, Flags) else Flags()


def _set_signature(
    function: Callable[..., None], own: list[inspect.Parameter], *, hidden: bool
) -> None:
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    everything = [context, *keywords, *global_flags.parameters(hidden=hidden)]
    function.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in everything}
