"""``omnigraph analyze``: graph algorithms over a branch or a commit."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

import omnigraph
from omnigraph import Analysis
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import MasterOption, MessageOption, UriArgument
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, columns
from omnigraph.cli.progress import watcher

app = single("Run a graph algorithm.")


@command(app, data_verb("analyze"))
def analyze(
    call: Invocation,
    algorithm: Annotated[
        str,
        typer.Argument(
            metavar="ALGORITHM",
            help="pagerank, components, communities, triangles, degrees or distances.",
        ),
    ],
    uri: UriArgument = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="The branch (default: main).")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TARGET", help="As of this commit, tag or time.")
    ] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option("--edge", metavar="TYPE", help="Only these edges. May be repeated."),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="TYPE", help="Only these nodes. May be repeated."),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="ID", help="distances: a start node ([Type:]id). May be repeated."
        ),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option("--direction", metavar="WHICH", help="distances: out, in or both (out)."),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight", metavar="PROPERTY", help="pagerank, distances: the weight of edges."
        ),
    ] = None,
    damping: Annotated[
        float | None,
        typer.Option("--damping", metavar="SHARE", help="pagerank: the damping factor."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", metavar="CHANGE", help="pagerank: stop at this residual."),
    ] = None,
    sweeps_max: Annotated[
        int | None,
        typer.Option("--sweeps", metavar="N", help="pagerank, communities: the limit."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, max=100, help="Show this many nodes.")
    ] = 10,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FILE", help="Save all values: .parquet, .csv or .jsonl, a new file."
        ),
    ] = None,
    write: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            metavar="[COLUMN=]PROPERTY",
            help="Write the values to this property of the nodes, as one commit.",
            show_default=False,
        ),
    ] = None,
    message: MessageOption = None,
    master: MasterOption = None,
) -> CommandResult:
    """Run a graph algorithm over a branch or a commit; large graphs are analysed on Spark."""
    location = call.address(uri)
    if write:
        call.echo(location)
    chosen = call.settings.with_master(master)
    graph = omnigraph.open(location.uri, read_only=not write, settings=chosen)
    given = {
        "sources": sources or None,
        "direction": direction,
        "weight": weight,
        "damping": damping,
        "tolerance": tolerance,
        "sweeps_max": sweeps_max,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    started = time.perf_counter()
    with graph.spark.analyze(
        algorithm,
        nodes=nodes or None,
        edges=edges or None,
        branch=branch,
        at=at,
        progress=watcher(call),
        **settings,
    ) as found:
        if to is not None:
            found.save(to)
        commit = None
        if write:
            commit = found.write(_targets(write, found), message=message, actor=call.actor)
        body = found.facts.to_json() | {
            "seconds": round(time.perf_counter() - started, 3),
            "top": found.top(limit),
            "commit": None if commit is None else commit.to_json(),
        }
    return CommandResult(body, _lines(body))


def _targets(write: list[str], found: Analysis) -> dict[str, str]:
    """The property of each column; a property without a column is for the first column."""
    targets = {}
    for text in write:
        column, equals, name = text.rpartition("=")
        targets[column if equals else found.columns[0]] = name
    return targets


def _lines(body: dict[str, Any]) -> list[str]:
    rows = [[str(value) for value in row.values()] for row in body["top"]]
    lines = columns([list(body["top"][0]), *rows]) if rows else []
    size = f"{body['algorithm']} of {body['nodes']} nodes and {body['edges']} edges"
    state = "" if body["converged"] else ", not settled"
    lines.append(f"{size}: {body['sweeps']} sweeps{state}, {body['seconds']:.1f} s")
    for name, value in body["statistics"].items():
        shown = value
        if isinstance(value, dict):
            shown = ", ".join(f"{key} {number:g}" for key, number in value.items())
        lines.append(f"{name}: {shown}")
    if body["commit"] is not None:
        lines.append(f"commit {body['commit']['graph_commit_id']}")
    return lines
