"""``omnigraph history``: every commit that changed an entity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Annotated, Any, Final

import typer

import omnigraph
from omnigraph import EntityEvent, MergedChange
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import (
    BranchOption,
    EntityArgument,
    IdArgument,
    PageTokenOption,
    TypeArgument,
    UriOption,
    type_key,
)
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, encoded_lines
from omnigraph.cli.versions.change_blocks import headline
from omnigraph.cli.versions.diff import image_lines
from omnigraph.errors import EntityNotFound

app = single("Show every commit that changed an entity.")

PAGE_EVENTS: Final = 100
"""Events per page if only a token is given."""


@command(app, data_verb("history", actor=False))
def history(
    call: Invocation,
    entity: EntityArgument,
    type_name: TypeArgument,
    id: IdArgument,
    uri: UriOption = None,
    branch: BranchOption = "main",
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="One page of N.", show_default=False),
    ] = None,
    page_token: PageTokenOption = None,
) -> CommandResult:
    """Show every commit that changed an entity, newest first, and what it changed."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    found = graph.history.entity(type_key(entity, type_name), id, branch)
    if limit is None and page_token is None:
        events = iter(found)
        first = next(events, None)
        if first is None:
            raise EntityNotFound(
                f"no commit of {branch} ever held a {type_name} with id {id!r}",
                details={"type_key": type_key(entity, type_name), "id": id},
            )
        return CommandResult(
            None, [], stream=_streamed(chain([first], events), as_json=call.flags.json)
        )
    page = found.page(limit or PAGE_EVENTS, page_token)
    body: dict[str, Any] = {"events": [event.to_json() for event in page.events]}
    lines = [line for event in page.events for line in _lines(event)]
    if page.next_page_token is not None:
        body["next_page_token"] = page.next_page_token
        lines.append(f"next page: --page-token {page.next_page_token}")
    return CommandResult(body, lines)


def _streamed(events: Iterable[EntityEvent], *, as_json: bool) -> Iterator[bytes]:
    if not as_json:
        for event in events:
            yield encoded_lines(_lines(event))
        return
    yield b'{"events": ['
    for number, event in enumerate(events):
        yield f"{',' if number else ''}\n{json.dumps(event.to_json())}".encode()
    yield b"\n]}\n"


def _lines(event: EntityEvent) -> list[str]:
    shown = image_lines(event.before, event.after)
    merged = [_merged_line(change) for change in event.merged]
    return [headline(event.commit), f"  {event.op}", *shown, *merged]


def _merged_line(change: MergedChange) -> str:
    """A commit of a merged branch whose changes the merge brought."""
    did = " ".join([change.op or "write", *change.properties])
    return f"  merged {headline(change.commit)}: {did}"
