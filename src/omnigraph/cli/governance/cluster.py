"""``omnigraph cluster``: graphs, queries and policies declared in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from omnigraph.cli.addressing import control_verb
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult, columns
from omnigraph.cluster.commands import Cluster

app = group("Plan, approve and apply graphs, queries and policies that are declared in files.")

DirOption = Annotated[
    str, typer.Option("--config", metavar="DIR", help="The folder with cluster.yaml.")
]
_SIGNS: Final = {"create": "+", "update": "~", "delete": "-"}


@command(app, control_verb("cluster validate"))
def validate(call: Invocation, config: DirOption = ".") -> CommandResult:
    """Check the configuration and every file it names."""
    body = _cluster(call, config).validate()
    count = len(body.get("resources", ()))
    return _result(body, [f"{count} resources are valid"])


@command(app, control_verb("cluster plan"))
def plan(call: Invocation, config: DirOption = ".") -> CommandResult:
    """Show what an apply would change. Changes nothing."""
    body = _cluster(call, config).plan()
    return _result(body, _plan_lines(body))


@command(app, control_verb("cluster apply", actor=True))
def apply(call: Invocation, config: DirOption = ".") -> CommandResult:
    """Apply the configuration. What loses data waits for an approval."""
    body = _cluster(call, config).apply(call.actor)
    lines = [
        f"{_SIGNS[one['operation']]} {one['resource']}: {one.get('disposition', 'applied')}"
        for one in body.get("changes", ())
    ]
    converged = "the cluster is as declared" if body["converged"] else "not everything is applied"
    return _result(body, [*lines, converged])


@command(app, control_verb("cluster approve", actor=True))
def approve(
    call: Invocation,
    resource: Annotated[str, typer.Argument(metavar="ADDRESS", help="Such as graph.people.")],
    config: DirOption = ".",
) -> CommandResult:
    """Approve a planned change that loses data. Any change of the plan makes it stale."""
    body = _cluster(call, config).approve(resource, call.actor)
    return _result(body, [f"approved: delete {resource} ({body.get('approval_id')})"])


@command(app, control_verb("cluster status"))
def status(call: Invocation, config: DirOption = ".") -> CommandResult:
    """Show what is applied, and who holds the lock."""
    body = _cluster(call, config).status()
    rows = [
        (address, body["resource_statuses"].get(address, {}).get("status", "applied"))
        for address in body.get("resource_digests", ())
    ]
    return _result(body, columns(rows) or ["nothing is applied"])


@command(app, control_verb("cluster refresh"))
def refresh(call: Invocation, config: DirOption = ".") -> CommandResult:
    """Look at every graph and note in the ledger what is there."""
    body = _cluster(call, config).refresh()
    return _result(body, [f"{len(body.get('observations', ()))} graphs were looked at"])


@command(app, control_verb("cluster import"))
def import_state(call: Invocation, config: DirOption = ".") -> CommandResult:
    """Begin a ledger with what is there already."""
    body = _cluster(call, config).import_state()
    return _result(body, [f"a ledger of {len(body.get('resource_digests', ()))} resources"])


@command(app, control_verb("cluster force-unlock"))
def unlock(
    call: Invocation,
    lock_id: Annotated[str, typer.Argument(metavar="LOCK_ID", help="As status shows it.")],
    config: DirOption = ".",
) -> CommandResult:
    """Remove the lock of a command that is gone."""
    body = _cluster(call, config).force_unlock(lock_id)
    return _result(body, ["the lock is removed"])


def _cluster(call: Invocation, config: str) -> Cluster:
    return Cluster(Path(config), call.settings)


def _result(body: dict[str, Any], lines: list[str]) -> CommandResult:
    said = [
        f"{one['severity']}[{one['code']}] {one['path']}: {one['message']}"
        for one in body["diagnostics"]
    ]
    shown = [*lines, *said] if body["ok"] else said
    return CommandResult(body, shown, EXIT_OK if body["ok"] else EXIT_FAILURE)


def _plan_lines(body: dict[str, Any]) -> list[str]:
    """A plan as people know it: signs, then a sum."""
    changes = body.get("changes", [])
    waiting = {one["resource"]: one["satisfied"] for one in body.get("approvals_required", ())}
    lines = []
    for change in changes:
        sign = _SIGNS[change["operation"]]
        note = f" ({change['reason']})" if "reason" in change else ""
        if change["resource"] in waiting:
            note = " (approved)" if waiting[change["resource"]] else " (needs approval)"
        lines.append(f"{sign} {change['resource']}{note}")
        lines += [
            f"    {step['kind']} {step.get('entity', '')}".rstrip()
            for step in change.get("migration", {}).get("steps", ())
        ]
    if not changes:
        return ["nothing to do: the cluster is as declared"]
    counts = [sum(one["operation"] == kind for one in changes) for kind in _SIGNS]
    total = "Plan: {} to create, {} to update, {} to delete.".format(*counts)
    return [*lines, "", total]
