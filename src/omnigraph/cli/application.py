"""The command line as one application: how a line finds its command, and how a run ends.

A noun's module is imported when one of its commands runs. It must never know what a command does.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import typer

from omnigraph.cli import output
from omnigraph.cli.frame import group_callback
from omnigraph.cli.main import HELP, NOUNS, OLD_NAMES, OLD_NOUNS
from omnigraph.cli.plain import PlainGroup
from omnigraph.errors import OmnigraphError


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
        module = importlib.import_module(f"omnigraph.cli.{name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

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
    app.callback(invoke_without_command=True)(group_callback(HELP, hidden=False))
    return typer.main.get_command(app)


def run_line(given: list[str], as_json: bool) -> int:
    """Run one command line; return its exit code."""
    try:
        code = application().main(given, prog_name="omnigraph", standalone_mode=False)
    except OmnigraphError as error:
        return output.report_error(error, as_json=as_json)
    except typer.TyperException as error:
        return _report_usage(error, as_json)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return output.EXIT_FAILURE
    except BrokenPipeError:
        raise
    except Exception as error:
        return output.report_defect(error, as_json=as_json)
    # A command that ends early (help, version, an interrupt) leaves its exit code.
    allowed = (output.EXIT_USAGE, output.EXIT_PRECONDITION)
    return code if code in allowed else output.EXIT_FAILURE if code else output.EXIT_OK


def _report_usage(error: typer.TyperException, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "omnigraph"
    return output.report_usage(error.format_message(), f"See `{path} --help`.", as_json=as_json)
