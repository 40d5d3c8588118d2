"""``omnigraph changes``: poll the change feed, follow it, capture a baseline."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer

import omnigraph
from omnigraph import ChangeBlock, FeedPage
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, UriOption
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult
from omnigraph.cli.versions.change_blocks import json_array, texts, trailer
from omnigraph.cli.versions.options import KindOption, OpOption, TypeOption
from omnigraph.errors import InvalidInput, PermissionDenied

app = group("Read the change feed of a branch.")

CursorOption = Annotated[
    str | None,
    typer.Option("--cursor", metavar="CURSOR", help="Continue from a cursor.", show_default=False),
]
StartOption = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="PLACE",
        help="The first position: now, beginning or after:COMMIT.",
        show_default=False,
    ),
]


@command(app, data_verb("changes poll", actor=False))
def poll(
    call: Invocation,
    uri: UriOption = None,
    branch: BranchOption = "main",
    cursor: CursorOption = None,
    start: StartOption = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="Changes per page.", show_default=False),
    ] = None,
    kinds: KindOption = None,
    types: TypeOption = None,
    ops: OpOption = None,
) -> CommandResult:
    """Print the changes of the commits after a position, and the next cursor."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    settings: dict[str, Any] = {"kinds": kinds or (), "types": types or (), "ops": ops or ()}
    if limit is not None:
        settings["limit"] = limit
    first = graph.history.changes(branch, start=start, cursor=cursor, **settings)

    def pages() -> Iterator[FeedPage]:
        page = first
        yield page
        while page.next_page_token is not None:
            page = graph.history.changes(branch, page_token=page.next_page_token, **settings)
            yield page

    return CommandResult(None, [], stream=_polled(pages(), as_json=call.flags.json))


def _polled(pages: Iterable[FeedPage], *, as_json: bool) -> Iterator[bytes]:
    last: list[FeedPage] = []

    def blocks() -> Iterator[ChangeBlock]:
        for page in pages:
            last[:] = [page]
            yield from page.blocks

    if as_json:
        yield b'{"blocks": ['
        yield from json_array(blocks())
        yield trailer({"cursor": last[0].cursor, "caught_up": last[0].caught_up})
        return
    yield from texts(blocks())
    if not last[0].caught_up:
        yield b"there is more: poll again\n"
    yield f"cursor: {last[0].cursor}\n".encode()


@command(app, data_verb("changes follow", actor=False))
def follow(
    call: Invocation,
    uri: UriOption = None,
    branch: BranchOption = "main",
    cursor: CursorOption = None,
    start: StartOption = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="The time between two polls.")
    ] = 1.0,
    kinds: KindOption = None,
    types: TypeOption = None,
    ops: OpOption = None,
) -> CommandResult:
    """Print changes as they are committed, until interrupted; --json prints a page per line."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    pages = graph.history.follow(
        branch,
        start=start,
        cursor=cursor,
        kinds=kinds or (),
        types=types or (),
        ops=ops or (),
        interval_s=interval,
    )
    return CommandResult(None, [], stream=_followed(pages, as_json=call.flags.json))


def _followed(pages: Iterable[FeedPage], *, as_json: bool) -> Iterator[bytes]:
    """Each page as soon as it is read; prints the last cursor on stderr at the end."""
    cursor = None
    try:
        for page in pages:
            if as_json:
                yield (json.dumps(page.to_json()) + "\n").encode()
            else:
                yield from texts(page.blocks)
            sys.stdout.flush()
            cursor = page.cursor or cursor
    finally:
        if cursor is not None:
            print(f"cursor: {cursor}", file=sys.stderr)


@command(app, data_verb("changes baseline", actor=False))
def baseline(
    call: Invocation,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    uri: UriOption = None,
    branch: BranchOption = "main",
    kinds: KindOption = None,
    types: TypeOption = None,
    ops: OpOption = None,
) -> CommandResult:
    """Write the state of a branch to a file, and print the cursor that follows it.

    The file is written completely or not at all.
    """
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    chunks = graph.history.baseline(branch, kinds=kinds or (), types=types or (), ops=ops or ())
    last = _write_whole(out, chunks)
    handshake = json.loads(last)["baseline"]
    lines = [
        f"baseline of commit {handshake['snapshot_commit_id']} in {out}",
        f"cursor: {handshake['resume_cursor']}",
    ]
    return CommandResult({"baseline": handshake, "out": str(out)}, lines)


def _write_whole(out: Path, chunks: Iterable[bytes]) -> bytes:
    """Write a file through a temporary one; return its last chunk. Only one writer at a time."""
    temporary = out.with_name(f"{out.name}.part")
    lock = out.with_name(f"{out.name}.lock")
    try:
        with lock.open("wb") as guard:
            _lock(guard)
            try:
                last = _write(temporary, chunks)
                temporary.replace(out)
                _sync_directory(out.parent)
            finally:
                temporary.unlink(missing_ok=True)
    except BlockingIOError:
        raise InvalidInput(
            f"another process is writing {out}", remedy="Wait for it, or choose another file."
        ) from None
    except PermissionError:
        raise PermissionDenied(
            f"not allowed to write {out}", remedy="Make the directory writable."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"cannot write {out}: {error.strerror}", remedy="Check the path and the free space."
        ) from None
    return last


def _lock(guard: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:
        return  # Windows has no fcntl: two writers of one file are not detected
    fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write(path: Path, chunks: Iterable[bytes]) -> bytes:
    last = b""
    with path.open("wb") as file:
        for last in chunks:
            file.write(last)
        file.flush()
        os.fsync(file.fileno())
    return last


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
