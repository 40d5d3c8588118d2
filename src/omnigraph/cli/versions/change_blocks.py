"""Prints the change feed: as lines for people, as one JSON object for programs.

Joins pages to one stream: a commit whose changes are on several pages is printed as one block.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from omnigraph import ChangeBlock, Commit
from omnigraph.cli.output import encoded_lines
from omnigraph.cli.units import shown_time
from omnigraph.cli.versions.diff import change_lines


def headline(commit: Commit) -> str:
    """One commit in one line."""
    by = f" by {commit.actor}" if commit.actor else ""
    message = f": {commit.message}" if commit.message else ""
    return f"commit {commit.commit_id}{by} at {shown_time(commit.created_at_us)}{message}"


def block_text(block: ChangeBlock, *, continued: bool = False) -> bytes:
    """A block as lines; a continued block has no headline."""
    lines = [] if continued else [headline(block.commit)]
    lines += [f"  {line}" for change in block.changes for line in change_lines(change)]
    return encoded_lines(lines)


def texts(blocks: Iterable[ChangeBlock]) -> Iterator[bytes]:
    last = None
    for block in blocks:
        yield block_text(block, continued=block.commit.commit_id == last)
        last = block.commit.commit_id


def json_array(blocks: Iterable[ChangeBlock]) -> Iterator[bytes]:
    """Blocks as the members of a JSON array, joined where they were split."""
    last = None
    for block in blocks:
        body = block.to_json()
        changes = [json.dumps(change) for change in body["changes"]]
        if block.commit.commit_id == last:
            yield "".join(f",\n{change}" for change in changes).encode()
            continue
        close = "" if last is None else "]},\n"
        last = block.commit.commit_id
        head = f'{close}{{"cause": {json.dumps(body["cause"])}, "changes": ['
        yield (head + ",\n".join(changes)).encode()
    if last is not None:
        yield b"]}"


def trailer(values: dict[str, Any]) -> bytes:
    """The members that follow the array in its object."""
    rest = "".join(f', "{name}": {json.dumps(value)}' for name, value in values.items())
    return f"]{rest}}}\n".encode()
