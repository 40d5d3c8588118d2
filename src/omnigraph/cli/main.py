"""The ``omnigraph`` program: its table of nouns, and how a run ends.

Owns the entry point. A noun's module is imported when one of its commands runs, never for
``--help``. It must never know what a command does.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import typer

from omnigraph.cli import output
from omnigraph.cli.frame import group_callback
from omnigraph.cli.plain import PlainGroup
from omnigraph.errors import OmnigraphError

# name: (module below omnigraph.cli, what the top-level help says)
NOUNS: Final = {
    "init": ("init", "Create a graph."),
    "load": ("load", "Load data as one commit."),
    "mutate": ("mutate", "Run a write query."),
    "export": ("export", "Write a graph out as NDJSON."),
    "blob": ("blob", "Read blobs."),
    "query": ("query", "Run a read query."),
    "snapshot": ("snapshot", "Show what a branch of a graph holds."),
    "commit": ("commit", "Look at the history of a graph."),
    "branch": ("branch", "Create, list, merge and delete branches."),
    "diff": ("diff", "Show what sets two states of a graph apart."),
    "changes": ("changes", "Read what commits change, as they come."),
    "history": ("history", "Show every commit that changed an entity."),
    "blame": ("blame", "Show who set the values of an entity."),
    "index": ("index", "Build the indexes of a graph."),
    "schema": ("schema", "Show a schema, or plan a change of it."),
    "lint": ("lint", "Check a file of queries against a schema."),
    "fmt": ("fmt", "Lay schema and query files out."),
    "explain": ("explain", "Show how a query would be carried out."),
    "recover": ("recover", "Finish or undo what dead writers left."),
    "recovery": ("recovery", "Look at unfinished writes and finished recoveries."),
    "version": ("version", "Print the version of the program and of its format."),
}

OLD_NAMES: Final = {"read": "query", "change": "mutate"}
"""Names that scripts may still use. They work, warn, and are not listed."""
OLD_NOUNS: Final = {"ingest": "load"}
"""The same for a command that reads its input otherwise than the one that took its place."""

HELP: Final = "A graph lakehouse: typed property graphs on Lance, versioned as one thing."


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


def _application() -> Any:
    app = typer.Typer(
        cls=LazyNouns,
        help=HELP,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True)(group_callback(HELP, hidden=False))
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code: 0, 1, 2 or 4."""
    given = drawing_asked_for(list(sys.argv[1:] if arguments is None else arguments))
    as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
    output.prepare_streams()
    try:
        code = _run(given, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        output.discard_output()
        return output.EXIT_FAILURE
    return code


def drawing_asked_for(given: list[str]) -> list[str]:
    """``--graph ID`` picks a graph; in ``commit list`` a ``--graph`` without ID draws one."""
    words = [word for word in given if not word.startswith("-")]
    if ("commit", "list") not in pairwise(words):
        return given
    followers = [*given[1:], "-"]
    return [
        "--dag" if word == "--graph" and after.startswith("-") else word
        for word, after in zip(given, followers, strict=True)
    ]


def _run(given: list[str], as_json: bool) -> int:
    try:
        code = _application().main(given, prog_name="omnigraph", standalone_mode=False)
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


if __name__ == "__main__":
    sys.exit(run())
