"""``omnigraph policy``: check a policy, ask it, test it, and compare two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.addressing import local_verb
from omnigraph.cli.arguments import read_text
from omnigraph.cli.commands import Invocation, command, group
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult, columns
from omnigraph.errors import InvalidInput
from omnigraph.policy.access import AccessScope, PolicyAction
from omnigraph.policy.cases import parse_cases, run_cases
from omnigraph.policy.compare import DecisionChange, compare_bundles
from omnigraph.policy.decision import PolicyEvaluator, described

app = group("Check a policy, ask it, test it, and compare two.")

BundleArgument = Annotated[str, typer.Argument(metavar="FILE", help="The policy (.policy.yaml).")]


def _place(flag: str, help: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar="NAME", help=help, show_default=False
    )
    return option


@command(app, local_verb("policy validate"))
def validate(call: Invocation, bundle: BundleArgument) -> CommandResult:
    """Check that a policy is valid: its format, its references, and its Cedar policies."""
    found = _evaluator(bundle).bundle
    data = {
        "policy": bundle,
        "version": found.version,
        "kind": found.kind,
        "digest": found.digest,
        "actors": len(found.actors),
        "groups": len(found.groups),
        "rules": len(found.rules),
    }
    said = f"{bundle} is valid: {len(found.rules)} rules for {len(found.actors)} actors"
    return CommandResult(data, [f"{said} (version {found.version}, about a {found.kind})"])


@command(app, local_verb("policy explain"))
def explain(
    call: Invocation,
    bundle: BundleArgument,
    who: Annotated[str, typer.Option("--actor", metavar="ACTOR", help="Who asks.")],
    action: Annotated[str, typer.Option("--action", metavar="ACTION", help="To do what.")],
    branch: Annotated[str | None, _place("--branch", "On which branch.")] = None,
    target_branch: Annotated[str | None, _place("--target-branch", "To which branch.")] = None,
    type: Annotated[str | None, _place("--type", "With which type.")] = None,
    query: Annotated[str | None, _place("--query-name", "Which stored query.")] = None,
) -> CommandResult:
    """Show a decision and the rule behind it."""
    if action not in set(PolicyAction):
        raise InvalidInput(
            f"there is no action {action!r}", remedy=f"Use one of {', '.join(PolicyAction)}."
        )
    scope = AccessScope(branch, target_branch, type, query)
    decision = _evaluator(bundle).decide(who, PolicyAction(action), scope)
    data = decision.to_json()
    rows = [(f"{key}:", str(value)) for key, value in data.items()]
    return CommandResult(data, columns(rows))


@command(app, local_verb("policy test"))
def test(
    call: Invocation,
    bundle: BundleArgument,
    tests: Annotated[str, typer.Option("--tests", metavar="FILE", help="The expected decisions.")],
) -> CommandResult:
    """Compare the decisions of a policy with expected ones; exits with 1 on a mismatch."""
    cases = parse_cases(read_text(Path(tests), "file of cases").encode(), tests)
    results = run_cases(_evaluator(bundle), cases)
    failed = [one for one in results if not one.passed]
    lines = [
        f"{one.case.id}: expected {'allow' if one.case.allowed else 'deny'}, "
        f"but {one.decision.message}"
        for one in failed
    ]
    data = {
        "ok": not failed,
        "cases": len(results),
        "failed": len(failed),
        "results": [one.to_json() for one in results],
    }
    lines.append(f"{len(results) - len(failed)} of {len(results)} cases passed")
    return CommandResult(data, lines, EXIT_FAILURE if failed else EXIT_OK)


@command(app, local_verb("policy diff"))
def diff(
    call: Invocation,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The policy in force.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The policy to compare with.")],
) -> CommandResult:
    """Show what two policies decide differently, over all actors, actions and places.

    A place named ~other stands for everything that no rule names.
    """
    changes = compare_bundles(_evaluator(old), _evaluator(new))
    data = {"changes": [one.to_json() for one in changes]}
    return CommandResult(data, [_line(one) for one in changes] or ["no decision differs"])


def _line(change: DecisionChange) -> str:
    sign = "+" if change.allowed_after else "-"
    rule = "" if change.rule is None else f" (rule {change.rule})"
    what = f"{change.action}{described(change.scope)}"
    return f"{sign} {', '.join(change.actors)}: {what}{rule}"


def _evaluator(path: str) -> PolicyEvaluator:
    return PolicyEvaluator.of_text(read_text(Path(path), "policy"), name=path)
