"""The entry point of the ``omnigraph`` program, and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from omnigraph.cli import output
from omnigraph.cli.application import run_application
from omnigraph.errors import InvalidInput, OmnigraphError, OutputFailed
from omnigraph.model.outcome import WriteOutcome
from omnigraph.settings import Settings

OWN_MEANINGS: Final = {
    "commit list": ("--graph", "--dag"),
    "query": ("--profile", "--analyze"),
    "read": ("--profile", "--analyze"),
}
"""Global flags that one command gives another meaning when no value follows. With a value,
``--graph ID`` picks a graph and ``--profile NAME`` a configured target in every command."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, by default that of this process; return the exit code.

    The codes are 0, 1, 2, 4 or 130.
    """
    given = own_meanings(list(sys.argv[1:] if arguments is None else arguments))
    as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
    output.prepare_streams()
    try:
        code = _run(given, as_json)
        output.flush_output()
    except BrokenPipeError:
        output.discard_output()
        return output.EXIT_FAILURE
    except OutputFailed as error:
        output.discard_output()
        return output.report_error(error, as_json=False)
    return code


def own_meanings(given: list[str]) -> list[str]:
    """The command line, with such flags replaced by the unambiguous flag of their command."""
    words = [word for word in given if not word.startswith("-")]
    verbs = {*words, *map(" ".join, pairwise(words))}
    meant = {flag: own for verb, (flag, own) in OWN_MEANINGS.items() if verb in verbs}
    followers = [*given, "-"][1:]
    return [
        meant.get(word, word) if after.startswith("-") else word
        for word, after in zip(given, followers, strict=True)
    ]


def _run(given: list[str], as_json: bool) -> int:
    try:
        return run_application(given, as_json)
    except OutputFailed:
        raise
    except OmnigraphError as error:
        return output.report_error(error, as_json=as_json)
    except KeyboardInterrupt:
        # The interrupt came before a command had begun, so nothing was written.
        return output.report_interrupt(WriteOutcome(), as_json=as_json)
    except BrokenPipeError:
        raise
    except Exception as error:
        return output.report_defect(error, as_json=as_json, traceback_shown=_debugs())


def _debugs() -> bool:
    """Whether a defect is shown with its traceback; False if the settings cannot be read."""
    try:
        return Settings.from_environment().cli.debug
    except InvalidInput:
        return False


if __name__ == "__main__":
    sys.exit(run())
