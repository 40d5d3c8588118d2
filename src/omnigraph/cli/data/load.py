"""``omnigraph load``: load data."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, cast

import typer

import omnigraph
from omnigraph import Graph, LoadMode, LoadResult
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import (
    BranchOption,
    IdempotencyOption,
    IfCommitOption,
    MasterOption,
    MessageOption,
    MetadataOption,
    UriArgument,
    pairs,
)
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.confirmation import confirm
from omnigraph.cli.output import CommandResult, columns, say, warn
from omnigraph.cli.progress import watcher
from omnigraph.errors import InvalidInput

app = single("Load data.")
_MODES = ("append", "merge", "upsert", "overwrite")


@command(app, data_verb("load"))
def load(
    call: Invocation,
    uri: UriArgument = None,
    *,
    data: Annotated[
        str,
        typer.Option(
            "--data", metavar="PATH", help="A file, directory or glob: NDJSON, Parquet or CSV."
        ),
    ],
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help=", ".join(_MODES) + ".")],
    branch: BranchOption = "main",
    base: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="BRANCH", help="Create the branch from this one if it is missing."
        ),
    ] = None,
    type_name: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The type of the rows of a table."),
    ] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN=PROPERTY",
            help="The property of a column; empty to skip the column. May be repeated.",
            show_default=False,
        ),
    ] = None,
    message: MessageOption = None,
    meta: MetadataOption = None,
    if_commit: IfCommitOption = None,
    idempotency_key: IdempotencyOption = None,
    upkeep: Annotated[
        bool,
        typer.Option("--upkeep/--no-upkeep", help="Compact and index after the report."),
    ] = True,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="ENGINE",
            help="auto (by estimated cost), spark or local.",
            show_default=False,
        ),
    ] = None,
    quarantine: Annotated[
        str | None,
        typer.Option(
            "--quarantine",
            metavar="FILE",
            help="A new file for invalid records and their errors (--on-error quarantine).",
            show_default=False,
        ),
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error", metavar="WHAT", help="fail, or quarantine: set invalid records aside."
        ),
    ] = "fail",
    master: MasterOption = None,
) -> CommandResult:
    """Load records as one commit. All of the input is checked before anything is written."""
    graph = open_for_load(call, uri, mode, master)
    started = time.perf_counter()
    result = graph.load(
        data,
        mode=cast("LoadMode", mode),
        branch=branch,
        from_=base,
        type=type_name,
        columns=pairs(mapping, "--column"),
        message=message,
        actor=call.actor,
        metadata=pairs(meta, "--meta"),
        expected_head=if_commit,
        idempotency_key=idempotency_key,
        progress=watcher(call),
        upkeep=False,
        engine=engine if master is None else "spark",
        quarantine=_quarantine(on_error, quarantine),
    )
    found = describe(graph, result, time.perf_counter() - started)
    if not upkeep:
        return found
    return replace(found, afterwards=lambda: _tend(call, graph, result))


def _tend(call: Invocation, graph: Graph, result: LoadResult) -> None:
    """Compact and index after the commit was reported; a line says so while it takes."""
    if watcher(call) is None:
        graph.maintenance.tend(result)
        return
    say("compacting and indexing; Ctrl-C leaves it to a later write")
    changed = graph.maintenance.tend(result)
    say(f"done: {', '.join(changed) or 'nothing to do'}")


def _quarantine(on_error: str, file: str | None) -> str | None:
    if on_error not in ("fail", "quarantine"):
        raise InvalidInput(f"{on_error!r} is neither `fail` nor `quarantine`")
    if (on_error == "quarantine") != (file is not None):
        raise InvalidInput(
            "--on-error quarantine and --quarantine FILE go together",
            remedy="Give both to set bad records aside, or neither to refuse them.",
        )
    return file


def open_for_load(call: Invocation, uri: str | None, mode: str, master: str | None = None) -> Graph:
    """Check the mode, ask for confirmation if it replaces data, and open the graph."""
    if mode not in _MODES:
        raise InvalidInput(f"{mode!r} is not a mode", remedy=f"Use one of {', '.join(_MODES)}.")
    location = call.address(uri)
    if mode == "overwrite":
        confirm(call, location, "Replace data")
    call.echo(location)
    return omnigraph.open(location.uri, settings=call.settings.with_master(master))


def _warn_of_losses(result: LoadResult) -> None:
    """Warn of values that a merge has set to null, and of edges that it has added again."""
    if result.values_nulled:
        warn(
            f"{result.values_nulled} stored values became null, because the input does not give "
            "them; --mode upsert keeps them"
        )
    if result.edges_repeated:
        warn(
            f"{result.edges_repeated} edges were added beside equal ones; --mode upsert does not "
            "add them"
        )


def describe(graph: Graph, result: LoadResult, seconds: float | None = None) -> CommandResult:
    """The result of a load: its counts, its commit and the time it took."""
    rows = [(name, str(count)) for name, count in sorted(result.nodes.items())]
    rows += [(name, str(count)) for name, count in sorted(result.edges.items())]
    commit = "nothing changed" if result.commit is None else f"commit {result.commit.commit_id}"
    total = f"loaded {result.total} entities into {result.branch}; {commit}"
    _warn_of_losses(result)
    if result.quarantined:
        total += f"; {result.quarantined} set aside"
    if seconds is not None:
        total += f"\n{seconds:.1f} s, {result.total / max(seconds, 0.001):,.0f} entities/s"
    return CommandResult(result.to_json(graph.uri), [*columns(rows), total])
