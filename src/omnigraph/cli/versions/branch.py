"""``omnigraph branch``: create, list, merge, delete and protect branches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

import omnigraph
from omnigraph import MergeConflict, MergeResult
from omnigraph.cli.addressing import data_verb
from omnigraph.cli.arguments import (
    IdempotencyOption,
    IfCommitOption,
    MasterOption,
    MessageOption,
    MetadataOption,
    UriOption,
    pairs,
)
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.confirmation import confirm
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult, warn
from omnigraph.cli.versions.diff import change_lines
from omnigraph.cli.versions.options import LevelOption, ResolveOption, StrategyOption, decisions

app = group("Create, list, merge and delete branches.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]


@command(app, data_verb("branch create"))
def create(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new branch.")],
    uri: UriOption = None,
    source: Annotated[
        str, typer.Option("--from", metavar="REF", help="A branch, a commit or a tag to fork.")
    ] = "main",
) -> CommandResult:
    """Create a branch at the head of another one, or at an older commit. Nothing is copied."""
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri, settings=call.settings)
    graph.branches.create(name, source, actor=call.actor)
    data = {"uri": graph.uri, "from": source, "name": name, "actor_id": call.actor}
    return CommandResult(data, [f"created branch {name} from {source}"])


@command(app, data_verb("branch list"))
def list_branches(call: Invocation, uri: UriOption = None) -> CommandResult:
    """List the branches, one name per line."""
    graph = omnigraph.open(call.address(uri).uri, read_only=True, settings=call.settings)
    names = sorted(graph.branches.list())
    return CommandResult({"branches": names}, names)


@command(app, data_verb("branch delete"))
def delete(
    call: Invocation,
    name: NameArgument,
    uri: UriOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Delete it even with unmerged commits.")
    ] = False,
) -> CommandResult:
    """Delete a branch. Refused while it has commits that were not merged, unless forced."""
    location = call.address(uri)
    confirm(call, location, f"Delete branch {name}")
    call.echo(location)
    graph = omnigraph.open(location.uri, settings=call.settings)
    graph.branches.delete(name, force=force)
    data = {"uri": graph.uri, "name": name, "actor_id": call.actor}
    return CommandResult(data, [f"deleted branch {name}"])


@command(app, data_verb("branch protect"))
def protect(
    call: Invocation,
    name: NameArgument,
    uri: UriOption = None,
    merges_only: Annotated[
        bool, typer.Option("--merges-only", help="Allow no other writes than merges.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="Lift the protection.")] = False,
) -> CommandResult:
    """Protect a branch from being deleted and reset."""
    location = call.address(uri)
    call.echo(location)
    graph = omnigraph.open(location.uri, settings=call.settings)
    graph.branches.protect(name, not off, merges_only=merges_only)
    data = {"uri": graph.uri, "name": name, "protected": not off, "merges_only": merges_only}
    return CommandResult(
        data, [f"{'lifted the protection of' if off else 'protected'} branch {name}"]
    )


@command(app, data_verb("branch merge"))
def merge(
    call: Invocation,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The branch to merge.")],
    uri: UriOption = None,
    target: Annotated[
        str, typer.Option("--into", metavar="BRANCH", help="The branch to merge into.")
    ] = "main",
    level: LevelOption = "property",
    strategy: StrategyOption = None,
    resolve: ResolveOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would happen; exit with 1 on conflicts.")
    ] = False,
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete the source afterwards.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="ENGINE",
            help="auto (by the size of the merge), spark or local.",
            show_default=False,
        ),
    ] = None,
    master: MasterOption = None,
    message: MessageOption = None,
    meta: MetadataOption = None,
    if_commit: IfCommitOption = None,
    idempotency_key: IdempotencyOption = None,
) -> CommandResult:
    """Merge a branch into another one, as one commit. Conflicts are listed and change nothing."""
    location = call.address(uri)
    if not dry_run:
        call.echo(location)
    settings = call.settings.with_master(master)
    graph = omnigraph.open(location.uri, read_only=dry_run, settings=settings)
    result = graph.merge(
        source,
        target,
        dry_run=dry_run,
        delete_branch=delete_branch,
        message=message,
        actor=call.actor,
        metadata=pairs(meta, "--meta"),
        expected_head=if_commit,
        idempotency_key=idempotency_key,
        engine=engine if master is None else "spark",
        **decisions(level, strategy, resolve),
    )
    if result.branch_delete_error is not None:
        warn(f"branch {source} was not deleted: {result.branch_delete_error}")
    code = EXIT_FAILURE if result.conflicts else EXIT_OK
    return CommandResult(result.to_json(call.actor), _lines(result), code)


def _conflict_lines(conflict: MergeConflict) -> list[str]:
    """A conflict, and the values that the three sides have."""
    lines = [f"conflict {conflict.kind}: {conflict.message}"]
    if conflict.depends_on:
        named = ", ".join(f"{key} {id!r}" for key, id in conflict.depends_on)
        lines.append(f"    depends on what is decided about {named}")
    sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
    for name in sorted({name for values in sides.values() for name in values or ()}):
        shown = (f"{side} {_shown(values, name)}" for side, values in sides.items())
        lines.append(f"    {name}: {', '.join(shown)}")
    return lines


def _shown(values: Mapping[str, Any] | None, name: str) -> str:
    return "absent" if values is None else json.dumps(values.get(name), ensure_ascii=False)


def _lines(result: MergeResult) -> list[str]:
    done = "would merge" if result.dry_run else "merged"
    lines = [f"{done} {result.source} into {result.target}: {result.outcome}"]
    if result.conflicts:
        found = f"{len(result.conflicts)} conflict{'s' if len(result.conflicts) > 1 else ''}"
        lines = [f"cannot merge {result.source} into {result.target}: {found}"]
    lines += [line for conflict in result.conflicts for line in _conflict_lines(conflict)]
    lines += [line for change in result.changes for line in change_lines(change)]
    if not result.checked:
        lines.append(
            "the schema of the target changes: constraints are checked by the merge itself"
        )
    if result.branch_deleted:
        lines.append(f"deleted branch {result.source}")
    return lines
