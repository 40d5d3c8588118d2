"""The command line as one application of typer's: help, usage errors, and every line that is not
plain.

A noun's module is imported when one of its commands runs. It must never know what a command does.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from omnigraph.cli import flags as global_flags
from omnigraph.cli import output
from omnigraph.cli.declared import REQUIRED, Parameter, option
from omnigraph.cli.flags import Flags
from omnigraph.cli.frame import Command, Noun
from omnigraph.cli.graph.version import version_lines
from omnigraph.cli.main import HELP, NOUNS, OLD_NAMES, OLD_NOUNS
from omnigraph.cli.plain import PlainCommand, PlainGroup

EPILOG = "Flags of every command: see `omnigraph --help`."


class LazyNouns(PlainGroup):
    """The top-level group: it knows every noun by name and loads one when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(NOUNS)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        now = OLD_NAMES.get(cmd_name) or OLD_NOUNS.get(cmd_name)
        if now is not None:
            output.warn(f"`{cmd_name}` is an old name: use `omnigraph {now}`.")
        cmd_name = OLD_NAMES.get(cmd_name, cmd_name)
        if cmd_name not in NOUNS and cmd_name not in OLD_NOUNS:
            return None
        name = NOUNS[cmd_name][0] if cmd_name in NOUNS else cmd_name
        made = noun_command(importlib.import_module(f"omnigraph.cli.{name}").app)
        made.name = cmd_name
        return made

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in NOUNS.items()])


def application() -> Any:
    """The whole program as one command."""
    app = typer.Typer(
        cls=LazyNouns,
        help=HELP,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True)(_group_callback(HELP, hidden=False))
    return typer.main.get_command(app)


def noun_command(noun: Noun) -> Any:
    """A noun as a command of typer's."""
    app = typer.Typer(
        cls=PlainGroup,
        help=noun.help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    if not noun.single:
        app.callback(invoke_without_command=True)(_group_callback(noun.help, hidden=True))
    for command in noun.commands.values():
        app.command(command.name, cls=PlainCommand, epilog=EPILOG)(_callback(command))
    return typer.main.get_command(app)


def run_application(given: list[str], as_json: bool) -> int:
    """Run one command line; return its exit code."""
    try:
        code = application().main(given, prog_name="omnigraph", standalone_mode=False)
    except typer.TyperException as error:
        return _report_usage(error, as_json)
    except typer.Abort:
        raise KeyboardInterrupt from None
    # A command that ends early (help, version, an interrupt) leaves its exit code.
    allowed = (output.EXIT_USAGE, output.EXIT_PRECONDITION, output.EXIT_INTERRUPTED)
    return code if code in allowed else output.EXIT_FAILURE if code else output.EXIT_OK


def _report_usage(error: typer.TyperException, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "omnigraph"
    return output.report_usage(error.format_message(), f"See `{path} --help`.", as_json=as_json)


# What typer calls


def _group_callback(help: str, *, hidden: bool) -> Callable[..., None]:
    """What runs before a command of a group: it collects the group's flags."""

    def collect(ctx: typer.Context, version: bool, **given: Any) -> None:
        ctx.obj = _outer(ctx).merged(Flags.taken_from(given))
        if ctx.invoked_subcommand is None:
            print(ctx.get_help(), file=sys.stderr)
            raise typer.Exit(output.EXIT_USAGE)

    _set_signature(collect, [], hidden=hidden)
    collect.__doc__ = help
    return collect


def _callback(command: Command) -> Callable[..., None]:
    def run(ctx: typer.Context, version: bool, **given: Any) -> None:
        flags = _outer(ctx).merged(Flags.taken_from(given))
        code = command.run(flags, given)
        if code:
            raise typer.Exit(code)

    _set_signature(run, command.parameters(), hidden=True)
    run.__doc__ = command.function.__doc__
    return run


def _outer(ctx: typer.Context) -> Flags:
    """The flags given to the groups around this command."""
    return ctx.obj if isinstance(ctx.obj, Flags) else Flags()


def _set_signature(function: Callable[..., None], own: list[Parameter], *, hidden: bool) -> None:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    context = inspect.Parameter("ctx", kind, annotation=typer.Context)
    declared = [*own, *global_flags.parameters(hidden=hidden), _version(hidden)]
    everything = [context, *map(_for_typer, declared)]
    function.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in everything}


def _for_typer(parameter: Parameter) -> inspect.Parameter:
    """A declared parameter in typer's words."""
    declared = parameter.declared
    words = typer.Option if declared.flags else typer.Argument
    made: Any = Annotated[parameter.kind, words(*declared.flags, **declared.settings)]
    kind, none = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    default = none if parameter.default is REQUIRED else parameter.default
    return inspect.Parameter(parameter.name, kind, default=default, annotation=made)


def _version(hidden: bool) -> Parameter:
    declared = option(
        "--version",
        "-v",
        help="Print the version and exit.",
        show_default=False,
        hidden=hidden,
        is_eager=True,
        callback=_print_version,
    )
    return Parameter("version", bool, declared, False)


def _print_version(wanted: bool) -> None:
    if wanted:
        print("\n".join(version_lines()))
        raise typer.Exit
