"""The ``omnigraph`` program: its entry point and its table of nouns.

Everything else is imported when a command runs, never for ``--help``. It must never know what a
command does.
"""

from __future__ import annotations

import gc
import os
import sys
from atexit import _run_exitfuncs as run_exit_functions
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from threading import enumerate as enumerate_threads
from threading import main_thread
from typing import Final

from omnigraph.cli.quick_start import import_later

# A tenth of a short command. Others import them in case of need: of a signature, an address with
# brackets, an error to be shown.
for _name in ("inspect", "ipaddress", "traceback"):
    import_later(_name)

from pathlib import Path  # noqa: E402

from omnigraph.cli import output  # noqa: E402
from omnigraph.cli.application import run_application
from omnigraph.cli.direct import read_line
from omnigraph.errors import OmnigraphError, OutputFailed  # noqa: E402
from omnigraph.model.outcome import Told  # noqa: E402

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
    "tag": ("tag", "Name commits, and list or remove names."),
    "diff": ("diff", "Show what sets two states of a graph apart."),
    "changes": ("changes", "Read what commits change, as they come."),
    "history": ("history", "Show every commit that changed an entity."),
    "blame": ("blame", "Show who set the values of an entity."),
    "revert": ("revert", "Undo a commit."),
    "cherry-pick": ("cherry_pick", "Repeat a commit on another branch."),
    "restore": ("restore", "Bring entities back to what they were."),
    "reset": ("reset", "Take a branch back to an older commit."),
    "embed": ("embed", "Make the vectors that are missing."),
    "analyze": ("analyze", "Run a graph algorithm over a graph."),
    "spark": ("spark", "Keep Spark running for bulk commands."),
    "index": ("index", "List, build and drop the indexes of a graph."),
    "optimize": ("optimize", "Join small files and bring indexes up to date."),
    "cleanup": ("cleanup", "Remove old history and what dead writers left."),
    "purge": ("purge", "Remove an entity from every branch and from all history."),
    "fsck": ("fsck", "Check a graph for damage."),
    "upgrade": ("upgrade", "Bring a graph to the current format."),
    "repair": ("repair", "Heal types that were changed from outside."),
    "backup": ("backup", "Copy a graph, and later what is new, to another place."),
    "clone": ("clone", "Copy a graph or a backup to an empty place."),
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

OWN_MEANINGS: Final = {
    "commit list": ("--graph", "--dag"),
    "query": ("--profile", "--analyze"),
    "read": ("--profile", "--analyze"),
}
"""Flags of every command that mean something else in one of them when no value follows: with an ID
``--graph`` picks a graph, with a NAME ``--profile`` picks a configured target."""

HELP: Final = "A graph lakehouse: typed property graphs on Lance, versioned as one thing."

STORED_HELP: Final = Path(__file__).with_name("help.txt")
"""What ``--help`` prints, as it was rendered once; a test holds it to what would be rendered now.
Rendering takes a library whose import alone takes longer than all the rest."""

GARBAGE_OBJECTS: Final = 200_000
"""Objects between two looks for garbage. Python looks every 700, in vain: nearly all that a short
command makes are modules, and those stay."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code: 0, 1, 2, 4 or 130.

    Without ``arguments`` it is the line of this process, which ends with it.
    """
    if arguments is not None:
        return _run_guarded(list(arguments))
    gc.set_threshold(GARBAGE_OBJECTS)
    code = _run_guarded(sys.argv[1:])
    _leave(code)
    return code


def _leave(code: int) -> None:
    """End the process without taking apart what ends with it. Nobody's last words are cut off:
    while other threads have something to finish, Python leaves as it always does.
    """
    gc.freeze()  # else leaving looks at everything once more
    if any(not thread.daemon for thread in enumerate_threads() if thread is not main_thread()):
        return
    run_exit_functions()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody is listening any more
            stream.flush()
    os._exit(code)


def _run_guarded(arguments: list[str]) -> int:
    given = own_meanings(arguments)
    as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
    output.prepare_streams()
    try:
        code = _help() if given in (["--help"], ["-h"]) else _run(given, as_json)
        output.flush_output()
    except BrokenPipeError:
        output.discard_output()
        return output.EXIT_FAILURE
    except OutputFailed as error:
        output.discard_output()
        return output.report_error(error, as_json=False)
    return code


def own_meanings(given: list[str]) -> list[str]:
    """A command line with flags that a command gives a meaning of its own spelled out."""
    words = [word for word in given if not word.startswith("-")]
    verbs = {*words, *map(" ".join, pairwise(words))}
    meant = {flag: own for verb, (flag, own) in OWN_MEANINGS.items() if verb in verbs}
    followers = [*given, "-"][1:]
    return [
        meant.get(word, word) if after.startswith("-") else word
        for word, after in zip(given, followers, strict=True)
    ]


def _help() -> int:
    with output.output_errors():
        print(STORED_HELP.read_text(encoding="utf-8"), end="")
    return output.EXIT_OK


def _run(given: list[str], as_json: bool) -> int:
    try:
        line = read_line(given)
        if line is not None:
            return line.command.run(line.flags, line.given)
        return run_application(given, as_json)
    except OutputFailed:
        raise
    except OmnigraphError as error:
        return output.report_error(error, as_json=as_json)
    except KeyboardInterrupt:
        return output.report_interrupt(Told(), as_json=as_json)  # no command has begun
    except BrokenPipeError:
        raise
    except Exception as error:
        return output.report_defect(error, as_json=as_json)


if __name__ == "__main__":
    sys.exit(run())
