"""``omnigraph commit``: list the commits of a branch, show one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

import omnigraph
from omnigraph.cli.arguments import BranchOption, UriArgument, UriOption
from omnigraph.cli.frame import Call, command, noun
from omnigraph.cli.output import Result, columns
from omnigraph.cli.scope import data_verb
from omnigraph.errors import InvalidInput

if TYPE_CHECKING:
    from omnigraph.manifest.rows import Commit

app = noun("Look at the history of a graph.")

_FIELDS: dict[str, Callable[[Commit], tuple[str | None, ...]]] = {
    # Whoever finished a write that its owner could not finish is an actor of it, too.
    "actor": lambda commit: (commit.actor, commit.recovered_by),
    "branch": lambda commit: (commit.branch,),
    "kind": lambda commit: (commit.kind,),
    "message": lambda commit: (commit.message,),
}
_METADATA = "metadata."


@command(app, data_verb("commit list", actor=False))
def list_commits(
    call: Call,
    uri: UriArgument = None,
    branch: BranchOption = "main",
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
        typer.Option("--limit", metavar="N", min=1, help="At most this many.", show_default=False),
    ] = None,
) -> Result:
    """List the commits that lead to the head of a branch, newest first."""
    where = _where(filters or [])
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    commits = graph.commits(branch, limit=limit, where=where)
    rows = [
        (
            commit.commit_id,
            _time(commit.created_at_us),
            commit.kind,
            commit.actor or "-",
            commit.message or "",
        )
        for commit in commits
    ]
    return Result({"commits": [commit.to_json() for commit in commits]}, columns(rows))


@command(app, data_verb("commit show", actor=False))
def show(
    call: Call,
    commit_id: Annotated[str, typer.Argument(metavar="ID", help="The commit's id.")],
    uri: UriOption = None,
) -> Result:
    """Show one commit, from whichever branch has it."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True)
    commit = graph.commit(commit_id)
    shown = {
        "commit": commit.commit_id,
        "branch": commit.branch,
        "kind": commit.kind,
        "parent": commit.parent,
        "merged parent": commit.merged_parent,
        "actor": commit.actor,
        "recovered by": commit.recovered_by,
        "date": _time(commit.created_at_us),
        "message": commit.message,
    } | dict(commit.metadata)
    rows = [(f"{name}:", value) for name, value in shown.items() if value is not None]
    return Result(commit.to_json(), columns(rows))


def _where(filters: list[str]) -> Callable[[Commit], bool] | None:
    """All conditions as one; None where there are none, so that a limit stays cheap."""
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


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(" ", "seconds")
