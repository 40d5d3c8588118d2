"""Printing: results on stdout, everything else on stderr.

Owns the two forms of every result (text for people, JSON for programs), the form of errors, and
the exit codes. It never changes the content of a result.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TextIO, cast

from omnigraph import __version__
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.errors import OmnigraphError, OutputFailed, PreconditionFailed
from omnigraph.lang.syntax.diagnostics import SourceError
from omnigraph.model.outcome import WriteOutcome

EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_PRECONDITION: Final = 4
EXIT_INTERRUPTED: Final = 130  # 128 and the number of SIGINT, as shells have it

DEBUG_VARIABLE: Final = "OMNIGRAPH_DEBUG"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: as JSON data, as lines of text, and its exit code.

    ``stream`` is used instead of both for output that is written to stdout as it is produced.
    ``afterwards`` is work after the output, which Ctrl-C may interrupt.
    """

    data: Any
    lines: Sequence[str]
    exit_code: int = EXIT_OK
    stream: Iterable[bytes] | None = None
    afterwards: Callable[[], None] | None = None


_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except tab and newline, bidirectional marks, and lone surrogates. A value with
one of these could otherwise overwrite text on a terminal."""


def printable(text: str) -> str:
    """The text with unprintable characters escaped as in JSON (``\\u001b``)."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """``printable`` text without newlines."""
    return printable(text.replace("\r", "\\r").replace("\n", "\\n"))


def encoded_lines(lines: Iterable[str]) -> bytes:
    """Printable lines as bytes, for ``CommandResult.stream``."""
    return "".join(f"{one_line(line)}\n" for line in lines).encode()


def prepare_streams() -> None:
    """Escape characters that the encoding of the terminal lacks, instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def print_result(result: CommandResult, *, as_json: bool) -> None:
    if result.stream is not None:
        for chunk in result.stream:
            with output_errors():
                sys.stdout.buffer.write(chunk)
        return
    if as_json:
        print_json(result.data)
        return
    with output_errors():
        for line in result.lines:
            print(printable(line))


@contextmanager
def output_errors() -> Iterator[None]:
    """Report a failed write to stdout as ``OutputFailed``."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has closed the pipe: not an error
    except OSError as error:
        raise OutputFailed(f"standard output cannot be written: {error.strerror}") from error


def flush_output() -> None:
    """Flush stdout."""
    with output_errors():
        sys.stdout.flush()


def print_json(data: Any) -> None:
    plain = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    with output_errors():
        print(printable(json.dumps(data, indent=2, ensure_ascii=plain)))


def say(text: str) -> None:
    """Print on stderr; a closed stderr is ignored."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr)


def warn(message: str) -> None:
    say(f"warning: {message}")


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as aligned text, two spaces between columns."""
    table = [[one_line(cell) for cell in row] for row in rows]
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
    headline, remedy = error.message, error.remedy
    if isinstance(error, SourceError):
        say(f"{error.render()}\n")
        errors = sum(item.severity == "error" for item in error.diagnostics) + error.omitted
        headline = f"{errors} error{'s' if errors > 1 else ''} in {error.source.name}"
        remedy = error.default_remedy
    for problem in error.details.get("violations", ()):
        say(_place(problem) + problem["message"])
    say(f"error[{error.code}]: {headline}\nremedy: {remedy}")


def _place(problem: Mapping[str, Any]) -> str:
    """The file and line of a violation, if they are known."""
    if "line" in problem:
        return f"{problem.get('file', 'line')}:{problem['line']}: "
    return f"{problem['file']}: " if "file" in problem else ""


def report_usage(message: str, remedy: str, *, as_json: bool) -> int:
    """Print an error of the argument parser; return the exit code."""
    if as_json:
        print_json(_body("bad_request", "usage", message, remedy))
    else:
        say(f"error[usage]: {message}\nremedy: {remedy}")
    return EXIT_USAGE


def _body(code: str, reason: str, message: str, remedy: str) -> dict[str, Any]:
    """An error that is not one of the tree, in the form of those that are."""
    return {
        "error": message,
        "code": code,
        "reason": reason,
        "remedy": remedy,
        "retryable": False,
    }


def report_interrupt(outcome: WriteOutcome | None, *, as_json: bool) -> int:
    """Print the outcome of a write after Ctrl-C (None: the command only reads).

    Returns the exit code.
    """
    if outcome is None:
        return EXIT_INTERRUPTED
    message = f"interrupted: {outcome.sentence()}"
    if as_json:
        print_json({"error": message, "reason": "interrupted", "commits": outcome.commits})
    else:
        print(message, file=sys.stderr)
    return EXIT_INTERRUPTED


def report_defect(error: Exception, *, as_json: bool, traceback_shown: bool) -> int:
    """Print an exception that is no ``OmnigraphError``; return the exit code."""
    if traceback_shown:
        traceback.print_exc()
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    message = f"{type(error).__name__}: {error}{notes}"
    remedy = f"This is a defect in Omnigraph: please report it with {DEBUG_VARIABLE}=1 set."
    if as_json:
        print_json(_body("internal", "internal", message, remedy))
    else:
        say(f"error[internal]: {message}\nremedy: {remedy}")
    return EXIT_FAILURE


def discard_output() -> None:
    """Redirect stdout to the null device: its reader has closed the pipe."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, cast(TextIO, sys.stdout).fileno())
    os.close(null)


def version_lines() -> list[str]:
    """The version of the program and of the storage format it writes."""
    return [f"omnigraph {__version__}", f"internal-schema {INTERNAL_VERSION}"]
