"""``omnigraph commit``: list the commits of a branch, show one, show its changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Annotated, Any, Final

import typer

import omnigraph
from omnigraph import ChangeBlock, Commit
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import BranchOption, PageTokenOption, UriArgument, UriOption
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import CommandResult, columns, encoded_lines
from omnigraph.cli.row_formats import cell
from omnigraph.cli.units import shown_time
from omnigraph.cli.versions.change_blocks import block_text, json_array, texts
from omnigraph.cli.versions.dag import draw
from omnigraph.cli.versions.options import KindOption, OpOption, TypeOption
from omnigraph.errors import InvalidInput

app = group("List and show commits.")

_FIELDS: dict[str, Callable[[Commit], tuple[str | None, ...]]] = {
    # A commit that recovery has published also matches the actor that ran the recovery.
    "actor": lambda commit: (commit.actor, commit.recovered_by),
    "branch": lambda commit: (commit.branch,),
    "kind": lambda commit: (commit.kind,),
    "message": lambda commit: (commit.message,),
}
_METADATA = "metadata."

KIND_WIDTH: Final = 8
ACTOR_WIDTH: Final = 12
"""Fixed widths of the columns: lines are printed before the widest cell is known."""


def _text(flag: str, metavar: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=help, show_default=False)


@command(app, data_verb("commit list", actor=False))
def list_commits(
    call: Invocation,
    uri: UriArgument = None,
    branch: BranchOption = "main",
    by: Annotated[str | None, _text("--actor", "ACTOR", "Only commits of ACTOR.")] = None,
    since: Annotated[str | None, _text("--since", "TIME", "Only commits since TIME.")] = None,
    until: Annotated[str | None, _text("--until", "TIME", "Only commits before TIME.")] = None,
    types: TypeOption = None,
    message: Annotated[
        str | None, _text("--message", "TEXT", "Only commits whose message contains TEXT.")
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Only commits with this actor, branch, kind, message or metadata.NAME. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=1, help="The most commits to list.", show_default=False
        ),
    ] = None,
    after: Annotated[
        str | None, _text("--after", "COMMIT", "Continue after the last commit of a page.")
    ] = None,
    dag: Annotated[
        bool,
        typer.Option(
            "--dag",
            help="Draw the commit graph with merged branches; so does --graph without a value.",
        ),
    ] = False,
) -> CommandResult:
    """List the commits that lead to the head of a branch, newest first."""
    handle = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    chosen: dict[str, Any] = {
        "actor": by,
        "since": since,
        "until": until,
        "types": types or (),
        "message": message,
        "where": _where(filters or []),
        "after": after,
    }
    if dag:
        if call.flags.json or any(value not in (None, ()) for value in chosen.values()):
            raise InvalidInput(
                "--dag cannot be combined with filters, --after or --json", remedy="Leave them out."
            )
        drawn = _drawn(islice(handle.history.ancestry(branch), limit), _tags(handle))
        return CommandResult(None, [], stream=drawn)
    found = islice(handle.history.log(branch, **chosen), limit)
    return CommandResult(None, [], stream=_streamed(found, _tags(handle), as_json=call.flags.json))


def _tags(graph: omnigraph.Graph) -> dict[str, list[str]]:
    """The names of tags, by the id of the tagged commit."""
    found: dict[str, list[str]] = {}
    for tag in graph.tags.list():
        found.setdefault(tag.commit_id, []).append(tag.name)
    return found


def _streamed(
    commits: Iterable[Commit], tags: Mapping[str, list[str]], *, as_json: bool
) -> Iterator[bytes]:
    """Commits as they are read: one line each, or one JSON object for all."""
    if not as_json:
        for commit in commits:
            yield encoded_lines([_line(commit, tags)])
        return
    yield b'{"commits": ['
    for number, commit in enumerate(commits):
        named = {"tags": tags[commit.commit_id]} if commit.commit_id in tags else {}
        yield f"{',' if number else ''}\n{json.dumps(commit.to_json() | named)}".encode()
    yield b"\n]}\n"


def _drawn(
    commits: Iterable[tuple[Commit, tuple[str, ...]]], tags: Mapping[str, list[str]]
) -> Iterator[bytes]:
    described = ((commit.commit_id, parents, _line(commit, tags)) for commit, parents in commits)
    return (encoded_lines([line]) for line in draw(described))


def _line(commit: Commit, tags: Mapping[str, list[str]]) -> str:
    names = ", ".join(tags.get(commit.commit_id, ()))
    cells = (
        commit.commit_id,
        shown_time(commit.created_at_us),
        commit.kind.ljust(KIND_WIDTH),
        (commit.actor or "-").ljust(ACTOR_WIDTH),
        *([f"({names})"] if names else []),
        commit.message or "",
    )
    return "  ".join(cells).rstrip()


@command(app, data_verb("commit show", actor=False))
def show(
    call: Invocation,
    commit_id: Annotated[str, typer.Argument(metavar="ID", help="The commit's id.")],
    uri: UriOption = None,
) -> CommandResult:
    """Show one commit of any branch."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    commit = graph.history.commit(commit_id)
    shown = {
        "commit": commit.commit_id,
        "branch": commit.branch,
        "kind": commit.kind,
        "parent": commit.parent,
        "merged parent": commit.merged_parent,
        "actor": commit.actor,
        "recovered by": commit.recovered_by,
        "date": shown_time(commit.created_at_us),
        "message": commit.message,
    } | dict(commit.metadata)
    rows = [(f"{name}:", cell(value)) for name, value in shown.items() if value is not None]
    return CommandResult(commit.to_json(), columns(rows))


@command(app, data_verb("commit changes", actor=False))
def changes(
    call: Invocation,
    commit_id: Annotated[str, typer.Argument(metavar="ID", help="The commit's id.")],
    uri: UriOption = None,
    kinds: KindOption = None,
    types: TypeOption = None,
    ops: OpOption = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="Changes per page.", show_default=False),
    ] = None,
    page_token: PageTokenOption = None,
) -> CommandResult:
    """Show what a commit changed, relative to its first parent."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    settings: dict[str, Any] = {"kinds": kinds or (), "types": types or (), "ops": ops or ()}
    if limit is not None:
        settings["limit"] = limit
    page = graph.history.commit_changes(commit_id, page_token=page_token, **settings)
    if page_token is not None:
        lines = block_text(page.block).decode().removesuffix("\n").split("\n")
        if page.next_page_token is not None:
            lines.append(f"next page: --page-token {page.next_page_token}")
        return CommandResult(page.to_json(), lines)

    def blocks() -> Iterator[ChangeBlock]:
        yield page.block
        token = page.next_page_token
        while token is not None:
            following = graph.history.commit_changes(commit_id, page_token=token, **settings)
            yield following.block
            token = following.next_page_token

    stream = json_array(blocks()) if call.flags.json else texts(blocks())
    return CommandResult(None, [], stream=chain(stream, [b"\n"] if call.flags.json else []))


def _where(filters: list[str]) -> Callable[[Commit], bool] | None:
    """The conjunction of the filters; None without filters."""
    conditions = [_condition(text) for text in filters]
    if not conditions:
        return None
    return lambda commit: all(condition(commit) for condition in conditions)


def _condition(text: str) -> Callable[[Commit], bool]:
    key, equals, value = text.partition("=")
    if equals and key in _FIELDS:
        return lambda commit: value in _FIELDS[key](commit)
    if equals and key.startswith(_METADATA) and key != _METADATA:
        return lambda commit: commit.metadata.get(key.removeprefix(_METADATA)) == value
    raise InvalidInput(
        f"{text!r} is not a filter",
        remedy=f"Write KEY=VALUE with one of {', '.join(_FIELDS)} or {_METADATA}NAME as the key.",
    )
