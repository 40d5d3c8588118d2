"""What the program prints, and where: results on stdout, everything else on stderr.

Owns the two forms of every result (text for people, JSON for programs), the form of errors, and
the exit codes. It must never decide what a result is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO, cast

from omnigraph.errors import OmnigraphError, PreconditionFailed
from omnigraph.frozen import frozen
from omnigraph.outcome import Told

EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_PRECONDITION: Final = 4
EXIT_INTERRUPTED: Final = 130  # 128 and the number of SIGINT, as shells have it

DEBUG_VARIABLE: Final = "OMNIGRAPH_DEBUG"


@frozen
class Result:
    """What a command found out: as data, as lines of text, and how the program ends.

    ``stream`` is for bytes that are the answer themselves: they go to stdout as they come.
    """

    data: Any
    lines: Sequence[str]
    exit_code: int = EXIT_OK
    stream: Iterable[bytes] | None = None


def prepare_streams() -> None:
    """Names are Unicode; a terminal that is not must show them somehow, not crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_result(result: Result, *, as_json: bool) -> None:
    if result.stream is not None:
        for chunk in result.stream:
            sys.stdout.buffer.write(chunk)
        return
    if as_json:
        print_json(result.data)
        return
    for line in result.lines:
        print(line)


def print_json(data: Any) -> None:
    import json

    plain = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    print(json.dumps(data, indent=2, ensure_ascii=plain))


def warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as aligned text, two spaces between columns."""
    table = [list(row) for row in rows]
    if not table:
        return []
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def report_error(error: OmnigraphError, *, as_json: bool) -> int:
    """Print a typed error; return the exit code."""
    if as_json:
        print_json(error.to_json())
    else:
        _print_error(error)
    return EXIT_PRECONDITION if isinstance(error, PreconditionFailed) else EXIT_FAILURE


def _print_error(error: OmnigraphError) -> None:
    from omnigraph.syntax.diagnostics import SourceError

    headline, remedy = error.message, error.remedy
    if isinstance(error, SourceError):
        print(f"{error.render()}\n", file=sys.stderr)
        errors = sum(item.severity == "error" for item in error.diagnostics) + error.omitted
        headline = f"{errors} error{'s' if errors > 1 else ''} in {error.source.name}"
        remedy = error.default_remedy
    for problem in error.details.get("violations", ()):
        print(_place(problem) + problem["message"], file=sys.stderr)
    print(f"error[{error.code}]: {headline}\nremedy: {remedy}", file=sys.stderr)


def _place(problem: Mapping[str, Any]) -> str:
    """Where a problem of some data is, as far as it is known."""
    if "line" in problem:
        return f"{problem.get('file', 'line')}:{problem['line']}: "
    return f"{problem['file']}: " if "file" in problem else ""


def report_usage(message: str, remedy: str, *, as_json: bool) -> int:
    """Print an error of the argument parser; return the exit code."""
    if as_json:
        print_json({"error": message, "code": "usage", "remedy": remedy, "retryable": False})
    else:
        print(f"error[usage]: {message}\nremedy: {remedy}", file=sys.stderr)
    return EXIT_USAGE


def report_interrupt(told: Told | None, *, as_json: bool) -> int:
    """Say after Ctrl-C what became of a write (None: a command that only reads).

    Returns the exit code.
    """
    if told is None:
        return EXIT_INTERRUPTED
    message = f"interrupted: {told.sentence()}"
    if as_json:
        print_json({"error": message, "code": "interrupted", "commits": told.commits})
    else:
        print(message, file=sys.stderr)
    return EXIT_INTERRUPTED


def report_defect(error: Exception, *, as_json: bool) -> int:
    """Print an error that is not one of ours; return the exit code."""
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exc()
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    message = f"{type(error).__name__}: {error}{notes}"
    remedy = f"This is a defect in Omnigraph: please report it with {DEBUG_VARIABLE}=1 set."
    if as_json:
        print_json({"error": message, "code": "internal", "remedy": remedy, "retryable": False})
    else:
        print(f"error[internal]: {message}\nremedy: {remedy}", file=sys.stderr)
    return EXIT_FAILURE


def discard_output() -> None:
    """The reader has gone: nothing can be printed any more, not even at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, cast(TextIO, sys.stdout).fileno())
    os.close(null)
