"""``omnigraph query``: run a read query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import omnigraph
from omnigraph import Limits, ReadOptions
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import (
    QuerySourceOption,
    QueryTextOption,
    UriOption,
    query_source,
    read_text,
)
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult
from omnigraph.cli.row_formats import FORMATS, RowFormat, render
from omnigraph.errors import InvalidInput
from omnigraph.lang.query import read_parameters
from omnigraph.model.integers import whole_number

ANALYZE_HELP = "Show the measured steps instead of the rows; so does --profile without a name."

app = single("Run a read query.")


def _option(flag: str, metavar: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=help, show_default=False)


@command(app, data_verb("query", actor=False))
def query(
    call: Invocation,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The query, if there are several.", show_default=False),
    ] = None,
    uri: UriOption = None,
    file: QuerySourceOption = None,
    text: QueryTextOption = None,
    params: Annotated[
        str | None, _option("--params", "JSON", "Values of the parameters, as an object.")
    ] = None,
    params_file: Annotated[
        str | None, _option("--params-file", "FILE", "A file with the parameters.")
    ] = None,
    branch: Annotated[str | None, _option("--branch", "NAME", "The branch.")] = None,
    snapshot: Annotated[
        str | None, _option("--snapshot", "COMMIT", "Read the state that a commit made.")
    ] = None,
    form: Annotated[
        str | None, _option("--format", "FORMAT", f"One of {', '.join(FORMATS)}.")
    ] = None,
    nearest: Annotated[
        str | None,
        _option("--nearest", "HOW", "exact, or indexed: faster, but may miss rows."),
    ] = None,
    analyze: Annotated[bool, typer.Option("--analyze", help=ANALYZE_HELP)] = False,
    timeout_ms: Annotated[
        str | None, _option("--timeout-ms", "MS", "The time limit of the query.")
    ] = None,
    rows_max: Annotated[
        str | None, _option("--max-rows", "N", "Fail if the result has more rows.")
    ] = None,
) -> CommandResult:
    """Run one read query and print its rows."""
    source, label = query_source(file, text)
    if branch is not None and snapshot is not None:
        raise InvalidInput("--branch and --snapshot exclude each other", remedy="Keep one of them.")
    chosen = _format(form, call.flags.json)
    if nearest not in (None, "exact", "indexed"):
        raise InvalidInput(
            f"--nearest must be exact or indexed, not {nearest!r}", remedy="Use exact or indexed."
        )
    given = _parameters(params, params_file)
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    options = ReadOptions(
        limits=_limits(timeout_ms, rows_max),
        nearest="indexed" if nearest == "indexed" else "exact",
        profile=analyze,
        file=label,
    )
    found = graph.query(source, name, given, branch, snapshot, options)
    if analyze:
        return CommandResult(found.profile_json(), found.profile_lines())
    if call.flags.json:
        return CommandResult(found.to_json(), [])
    lines = render(found, chosen)
    if chosen == "csv":  # values are not escaped for a terminal
        return CommandResult(None, [], stream=(f"{line}\n".encode() for line in lines))
    return CommandResult(None, lines)


def _parameters(text: str | None, file: str | None) -> Any:
    if text is not None and file is not None:
        raise InvalidInput("both --params and --params-file are given", remedy="Keep one of them.")
    if file is not None:
        text = read_text(Path(file), "parameter file")
    return None if text is None else read_parameters(text)


def _format(form: str | None, as_json: bool) -> RowFormat:
    if form is None:
        return "table"
    if as_json:
        raise InvalidInput("--format and --json exclude each other", remedy="Keep one of them.")
    for known in FORMATS:
        if known == form:
            return known
    raise InvalidInput(
        f"there is no format {json.dumps(form)}", remedy=f"Use one of {', '.join(FORMATS)}."
    )


def _limits(timeout_ms: str | None, rows_max: str | None) -> Any:
    standard = Limits()
    return Limits(
        _number("--timeout-ms", timeout_ms, standard.timeout_ms),
        standard.memory_bytes,
        _number("--max-rows", rows_max, standard.rows_max),
    )


def _number(flag: str, text: str | None, standard: int) -> int:
    if text is None:
        return standard
    found = whole_number(text)
    if found is None:
        raise InvalidInput(
            f"{flag} must be a whole number, not {text[:40]!r}",
            remedy=f"Give {flag} a whole number.",
        )
    return found
