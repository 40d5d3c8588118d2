"""Makes commands of functions.

Adds the global flags, the capability check and the two forms of output to every command. A command
function takes an :class:`Invocation` and its own arguments and returns a :class:`CommandResult`; it
prints nothing. This module must never know a particular command.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from omnigraph.cli import addressing
from omnigraph.cli import flags as global_flags
from omnigraph.cli.addressing import Verb
from omnigraph.cli.flags import Flags
from omnigraph.cli.output import (
    EXIT_USAGE,
    CommandResult,
    flush_output,
    output_errors,
    print_result,
    report_interrupt,
    version_lines,
)
from omnigraph.model.outcome import noting_outcome
from omnigraph.settings import Settings
from omnigraph.storage.locations import Location

Function = Callable[..., CommandResult]

EPILOG = "Flags of every command: see `omnigraph --help`."


@dataclass(frozen=True, slots=True)
class Invocation:
    """One invocation of a command, with its global flags and settings."""

    verb: Verb
    flags: Flags
    settings: Settings

    @property
    def actor(self) -> str | None:
        """The actor that commits of this command record."""
        return self.flags.actor or self.settings.actor

    def address(self, uri: str | None) -> Location:
        """The location of the graph that this command works on."""
        if not self.flags.quiet:
            addressing.warn_of_unread_config(self.settings.cli)
        return addressing.address(self.flags, uri, self.settings.cli)

    def echo(self, location: Location) -> None:
        """Print on stderr which graph is about to be changed."""
        if not self.flags.quiet:
            place = "local" if location.is_local else "remote"
            print(f"omnigraph {self.verb.name} → {location.uri} (direct, {place})", file=sys.stderr)


class Command(TyperCommand):
    """A command whose help page fails with ``OutputFailed`` if it cannot be written."""

    def get_help_option(self, ctx: Any) -> Any:
        return _with_checked_output(super().get_help_option(ctx))


class CommandGroup(TyperGroup):
    """A group of commands; its help page fails like that of :class:`Command`."""

    def get_help_option(self, ctx: Any) -> Any:
        return _with_checked_output(super().get_help_option(ctx))


def _with_checked_output(option: Any) -> Any:
    if option is not None:
        option.callback = _print_help
    return option


def _print_help(ctx: typer.Context, parameter: Any, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        with output_errors():
            print(ctx.get_help())
        raise typer.Exit


def single(help: str) -> typer.Typer:
    """A typer application with one command."""
    return typer.Typer(
        cls=CommandGroup,
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def group(help: str) -> typer.Typer:
    """A typer application with several commands, which also takes the global flags itself."""
    app = single(help)
    app.callback(invoke_without_command=True)(group_callback(help, hidden=True))
    return app


def command(app: typer.Typer, verb: Verb) -> Callable[[Function], Function]:
    """Register a function as a command of an application."""

    def register(function: Function) -> Function:
        app.command(verb.name.rpartition(" ")[2], cls=Command, epilog=EPILOG)(
            _callback(verb, function)
        )
        return function

    return register


def group_callback(help: str, *, hidden: bool) -> Callable[..., None]:
    """The callback that collects the flags of a group before its command runs."""

    def collect(ctx: typer.Context, version: bool, **given: Any) -> None:
        ctx.obj = _outer(ctx).merged(Flags.taken_from(given))
        if ctx.invoked_subcommand is None:
            print(ctx.get_help(), file=sys.stderr)
            raise typer.Exit(EXIT_USAGE)

    _set_signature(collect, [], hidden=hidden)
    collect.__doc__ = help
    return collect


def _callback(verb: Verb, function: Function) -> Callable[..., None]:
    def run(ctx: typer.Context, version: bool, **given: Any) -> None:
        flags = _outer(ctx).merged(Flags.taken_from(given))
        code = _run(verb, function, flags, given)
        if code:
            raise typer.Exit(code)

    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    _set_signature(run, own, hidden=True)
    run.__doc__ = function.__doc__
    return run


def _run(verb: Verb, function: Function, flags: Flags, given: dict[str, Any]) -> int:
    """Run a command, print its result, and return the exit code."""
    verb.check(flags)
    with noting_outcome() as outcome:
        try:
            result = function(Invocation(verb, flags, Settings.from_environment()), **given)
            print_result(result, as_json=flags.json)
        except KeyboardInterrupt:
            return report_interrupt(outcome if verb.writes else None, as_json=flags.json)
    if result.afterwards is not None:
        flush_output()
        with contextlib.suppress(KeyboardInterrupt):
            result.afterwards()
    return result.exit_code


def _outer(ctx: typer.Context) -> Flags:
    """The flags given to the groups around this command."""
    return ctx.obj if isinstance(ctx.obj, Flags) else Flags()


def _set_signature(
    function: Callable[..., None], own: list[inspect.Parameter], *, hidden: bool
) -> None:
    """Give a callback the parameters that typer reads: its own and the global flags."""
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    everything = [context, *named, *global_flags.parameters(hidden=hidden), _version(hidden)]
    function.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in everything}


def _version(hidden: bool) -> inspect.Parameter:
    how = typer.Option(
        "--version",
        "-v",
        help="Print the version and exit.",
        show_default=False,
        hidden=hidden,
        is_eager=True,
        callback=_print_version,
    )
    return inspect.Parameter(
        "version",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, how],
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        with output_errors():
            print("\n".join(version_lines()))
        raise typer.Exit
