"""The command line as one typer application.

Owns the table of commands and the group that imports a command's module when it is called. It must
never know what a command does.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import typer

from omnigraph.cli import output
from omnigraph.cli.commands import CommandGroup, group_callback
from omnigraph.model.extras import extra_required

HELP: Final = "A graph lakehouse: typed property graphs on Lance, versioned as one thing."

# name: (module below omnigraph.cli, what the top-level help says)
NOUNS: Final = {
    "init": ("graph.init", "Create a graph."),
    "load": ("data.load", "Load data as one commit."),
    "mutate": ("data.mutate", "Run a write query."),
    "export": ("data.export", "Write a graph out as NDJSON."),
    "blob": ("data.blob", "Read blobs."),
    "query": ("data.query", "Run a read query."),
    "snapshot": ("graph.snapshot", "Show the types of a branch and their table versions."),
    "commit": ("versions.commit", "List and show commits."),
    "branch": ("versions.branch", "Create, list, merge and delete branches."),
    "tag": ("versions.tag", "Create, list and delete tags."),
    "diff": ("versions.diff", "Show the difference between two states of a graph."),
    "changes": ("versions.changes", "Read the change feed of a branch."),
    "history": ("versions.history", "Show every commit that changed an entity."),
    "blame": ("versions.blame", "Show who set the values of an entity."),
    "revert": ("versions.revert", "Undo a commit."),
    "cherry-pick": ("versions.cherry_pick", "Repeat a commit on another branch."),
    "restore": ("versions.restore", "Restore entities from an older state."),
    "reset": ("versions.reset", "Reset a branch to an older commit."),
    "embed": ("data.embed", "Compute missing embeddings."),
    "analyze": ("data.analyze", "Run a graph algorithm over a graph."),
    "serve": ("data.serve", "Serve graphs over HTTP."),
    "mcp": ("data.mcp", "Serve a graph to a language model as MCP tools."),
    "spark": ("data.spark", "Keep a Spark server running for bulk commands."),
    "index": ("maintenance.index", "List, build and drop the indexes of a graph."),
    "optimize": ("maintenance.optimize", "Compact small files and update indexes."),
    "cleanup": ("maintenance.cleanup", "Remove old history and abandoned files."),
    "purge": ("maintenance.purge", "Remove an entity from every branch and from all history."),
    "fsck": ("maintenance.fsck", "Check a graph for damage."),
    "upgrade": ("graph.upgrade", "Bring a graph to the current format."),
    "repair": ("maintenance.repair", "Repair tables that another program changed."),
    "backup": ("graph.backup", "Back a graph up, incrementally."),
    "clone": ("graph.clone", "Copy a graph or a backup to an empty location."),
    "schema": ("graph.schema", "Show a schema, or plan a change of it."),
    "lint": ("data.lint", "Check a file of queries against a schema."),
    "fmt": ("data.fmt", "Format schema and query files."),
    "explain": ("data.explain", "Show the plan of a query."),
    "cluster": ("governance.cluster", "Plan and apply graphs, queries and policies."),
    "policy": ("governance.policy", "Check, ask, test and compare policies."),
    "recover": ("maintenance.recover", "Resolve unfinished writes of dead processes."),
    "recovery": ("maintenance.recovery", "List unfinished writes and finished recoveries."),
    "version": ("graph.version", "Print the version of the program and of its format."),
}

OLD_NAMES: Final = {"read": "query", "change": "mutate"}
"""Former names of commands. They still work, print a warning, and are not listed."""
OLD_NOUNS: Final = {"ingest": ("data.ingest", "load")}
"""Former commands that are not only renamed: their replacement reads its input differently."""


class LazyGroup(CommandGroup):
    """The top-level group: it knows every command by name and imports its module on use."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(NOUNS)  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NOUNS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in OLD_NOUNS:
            module, now = OLD_NOUNS[cmd_name]
            _warn_of_old_name(cmd_name, now)
        elif cmd_name in OLD_NAMES:
            now = OLD_NAMES[cmd_name]
            _warn_of_old_name(cmd_name, now)
            cmd_name, module = now, NOUNS[now][0]
        elif cmd_name in NOUNS:
            module = NOUNS[cmd_name][0]
        else:
            return None
        made = load_command(module)
        made.name = cmd_name
        return made

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in NOUNS.items()])


def load_command(module: str) -> Any:
    """The command, or group of commands, of a module below ``omnigraph.cli``."""
    with extra_required():
        found = importlib.import_module(f"omnigraph.cli.{module}")
    return typer.main.get_command(found.app)


def application() -> Any:
    """The whole program as one command."""
    app = typer.Typer(
        cls=LazyGroup,
        help=HELP,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True)(group_callback(HELP, hidden=False))
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


def _warn_of_old_name(name: str, now: str) -> None:
    output.warn(f"`{name}` is an old name: use `omnigraph {now}`.")


def _report_usage(error: typer.TyperException, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "omnigraph"
    return output.report_usage(error.format_message(), f"See `{path} --help`.", as_json=as_json)
