"""``omnigraph diff``: show the difference between two states."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

import omnigraph
from omnigraph import Diff, EntityChange
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import PageTokenOption, UriOption
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, encoded_lines
from omnigraph.cli.versions.options import KindOption, OpOption, TypeOption

app = single("Show the difference between two states of a graph.")

_MARKS = {"insert": "+", "update": "~", "delete": "-"}
_TARGET = "A branch, a tag, a commit id, or a time."


@command(app, data_verb("diff", actor=False))
def diff(
    call: Invocation,
    old: Annotated[str, typer.Argument(metavar="FROM", help=_TARGET)],
    new: Annotated[str, typer.Argument(metavar="TO", help=_TARGET)],
    uri: UriOption = None,
    kinds: KindOption = None,
    types: TypeOption = None,
    ops: OpOption = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only count.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="One page of N.", show_default=False),
    ] = None,
    page_token: PageTokenOption = None,
) -> CommandResult:
    """Show which entities differ, by value. ``+`` is only in TO, ``-`` only in FROM."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    found = graph.diff(old, new, kinds=kinds or (), types=types or (), ops=ops or ())
    if summary:
        return CommandResult(_head(found) | {"stats": found.stats.to_json()}, _summary(found))
    if limit is None and page_token is None:
        return CommandResult(None, [], stream=_streamed(found, as_json=call.flags.json))
    page = found.page(**({} if limit is None else {"limit": limit}), page_token=page_token)
    body = _head(found) | {"changes": [change.to_json() for change in page.changes]}
    if page.next_page_token is not None:
        body["next_page_token"] = page.next_page_token
    lines = [line for change in page.changes for line in change_lines(change)]
    if page.next_page_token is not None:
        lines.append(f"next page: --page-token {page.next_page_token}")
    return CommandResult(body, lines)


def _head(found: Diff) -> dict[str, Any]:
    return {
        "from_graph_manifest_version": found.old.snapshot.manifest_version,
        "to_graph_manifest_version": found.new.snapshot.manifest_version,
        "schema": [change.to_json() for change in found.schema],
    }


def _streamed(found: Diff, *, as_json: bool) -> Iterator[bytes]:
    """Changes as they are found: lines for people, one JSON object for programs."""
    if not as_json:
        yield encoded_lines(map(str, found.schema))
        for change in found:
            yield encoded_lines(change_lines(change))
        return
    head = json.dumps(_head(found))
    yield f'{head[:-1]}, "changes": ['.encode()
    counts = dict.fromkeys(_MARKS, 0)
    for number, change in enumerate(found):
        counts[change.op] += 1
        yield f"{',' if number else ''}\n{json.dumps(change.to_json())}".encode()
    stats = json.dumps({f"{op}s": count for op, count in counts.items()})
    yield f'\n], "stats": {stats}}}\n'.encode()


def _summary(found: Diff) -> list[str]:
    lines = [str(change) for change in found.schema]
    for key, counts in sorted(found.stats.counts.items()):
        shown = "  ".join(f"{_MARKS[op]}{count}" for op, count in sorted(counts.items()))
        lines.append(f"{key.replace(':', ' ', 1)}  {shown}")
    return lines or ["no difference"]


def change_lines(change: EntityChange) -> list[str]:
    """One entity, followed by its changed properties."""
    head = f"{_MARKS[change.op]} {change.kind} {change.type_name} {change.id}"
    ends = change.endpoints
    if ends is not None:
        head += f"  {ends['from']} -> {ends['to']}"
    if change.op != "update":
        return [head]
    return [head, *image_lines(change.before, change.after)]


def image_lines(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    """The properties that differ between two images, one per line; all properties of one image."""
    old, new = _flat(before), _flat(after)
    if before is None or after is None:
        return [f"    {name}: {_shown(value)}" for name, value in {**old, **new}.items()]
    return [
        f"    {name}: {_shown(old.get(name))} -> {_shown(new.get(name))}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name) or (name in old) != (name in new)
    ]


def _flat(image: dict[str, Any] | None) -> dict[str, Any]:
    image = image or {}
    return {**image.get("properties", {}), **image.get("endpoints", {})}


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
