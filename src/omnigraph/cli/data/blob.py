"""``omnigraph blob``: the bytes of a blob, or its kind, size and tag."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import omnigraph
from omnigraph import Blob
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import EntityArgument, IdArgument, TypeArgument, UriOption
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult, columns
from omnigraph.errors import InvalidInput

app = group("Read blobs.")

Property = Annotated[str, typer.Argument(metavar="PROPERTY", help="The blob property.")]
Branch = Annotated[str | None, typer.Option("--branch", metavar="NAME", help="The branch.")]
Snapshot = Annotated[
    str | None, typer.Option("--snapshot", metavar="COMMIT", help="As of this commit.")
]


@command(app, data_verb("blob get", actor=False))
def get(
    call: Invocation,
    entity: EntityArgument,
    type_name: TypeArgument,
    id: IdArgument,
    property: Property,
    uri: UriOption = None,
    branch: Branch = None,
    snapshot: Snapshot = None,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0)] = 0,
    length: Annotated[
        int | None, typer.Option("--length", metavar="N", min=1, show_default=False)
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write to a file.")
    ] = None,
) -> CommandResult:
    """Print the bytes of a blob, or a range of them."""
    blob = _find(call, uri, branch, snapshot, (entity, type_name, id, property))
    chunks = blob.chunks(offset, length)
    if out is None:
        return CommandResult(None, [], stream=chunks)
    written = _write(Path(out), chunks)
    return CommandResult({"out": out, "bytes": written}, [f"wrote {written} bytes to {out}"])


@command(app, data_verb("blob stat", actor=False))
def stat(
    call: Invocation,
    entity: EntityArgument,
    type_name: TypeArgument,
    id: IdArgument,
    property: Property,
    uri: UriOption = None,
    branch: Branch = None,
    snapshot: Snapshot = None,
) -> CommandResult:
    """Show the kind, size and tag of a blob without reading it."""
    blob = _find(call, uri, branch, snapshot, (entity, type_name, id, property))
    known = {"kind": blob.kind, "size": blob.size, "etag": blob.etag, "uri": blob.uri}
    shown = {name: value for name, value in known.items() if value is not None}
    target = {"branch": branch, "snapshot": snapshot, "resolved_snapshot": blob.snapshot}
    data = {
        "selector": blob.selector.to_json(),
        **shown,
        "target": {name: value for name, value in target.items() if value is not None},
    }
    return CommandResult(data, columns([(f"{name}:", str(value)) for name, value in shown.items()]))


def _find(
    call: Invocation,
    uri: str | None,
    branch: str | None,
    snapshot: str | None,
    selector: tuple[str, str, str, str],
) -> Blob:
    if branch is not None and snapshot is not None:
        raise InvalidInput("both --branch and --snapshot are given", remedy="Keep one of them.")
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    return graph.blob(*selector, branch=branch, at=snapshot)


def _write(path: Path, chunks: Iterator[bytes]) -> int:
    written = 0
    try:
        with path.open("wb") as file:
            for chunk in chunks:
                written += file.write(chunk)
    except OSError as problem:
        raise InvalidInput(f"cannot write {path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise InvalidInput(f"no file can have the name {str(path)!a}") from problem
    return written
