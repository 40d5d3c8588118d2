"""What changes for whom between two bundles.

Every actor and action is asked about one example of every place that a rule of either bundle
distinguishes: each literal, an example of each pattern, and a place that no rule names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from omnigraph.policy.access import (
    BRANCH_ACTIONS,
    SERVER_ACTIONS,
    TARGET_ACTIONS,
    TRANSITIONS,
    AccessScope,
    PolicyAction,
)
from omnigraph.policy.bundle import OWN_ACTOR, Bundle
from omnigraph.policy.decision import PolicyEvaluator

ELSEWHERE: Final = "~other"
"""An example of what no rule names; no branch, type or query has this name."""


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """One question that two bundles answer differently."""

    actors: tuple[str, ...]
    action: PolicyAction
    scope: AccessScope
    allowed_after: bool
    rule: str | None

    def to_json(self) -> dict[str, Any]:
        scope = self.scope
        optional = {
            "branch": scope.branch,
            "target_branch": scope.target_branch,
            "type": scope.type,
            "query": scope.query,
            "rule": self.rule,
        }
        return {
            "actors": list(self.actors),
            "action": str(self.action),
            **{key: value for key, value in optional.items() if value is not None},
            "before": "deny" if self.allowed_after else "allow",
            "after": "allow" if self.allowed_after else "deny",
        }


def compare_bundles(old: PolicyEvaluator, new: PolicyEvaluator) -> list[DecisionChange]:
    """Every question that the two answer differently, over all actors, actions and places."""
    found: list[DecisionChange] = []
    for actors in _classes(old.bundle, new.bundle):
        for action in PolicyAction:
            for scope in _scopes((old.bundle, new.bundle), action, actors[0]):
                before = old.decide(actors[0], action, scope)
                after = new.decide(actors[0], action, scope)
                if before.allowed != after.allowed:
                    rule = after.rule or before.rule
                    found.append(DecisionChange(actors, action, scope, after.allowed, rule))
    return found


def _classes(old: Bundle, new: Bundle) -> list[tuple[str, ...]]:
    """Actors that both bundles treat alike: those of the same groups, unless rules name actors."""
    patterns = [
        pattern
        for bundle in (old, new)
        for rule in bundle.rules
        for pattern in (*rule.branches, *rule.target_branches)
    ]
    own = any(OWN_ACTOR in pattern for pattern in patterns)
    classes: dict[Any, list[str]] = {}
    for actor in sorted({*old.actors, *new.actors}):
        member_of = tuple(
            (number, name)
            for number, bundle in enumerate((old, new))
            for name, members in bundle.groups.items()
            if actor in members
        )
        classes.setdefault((actor,) if own else member_of, []).append(actor)
    return [tuple(members) for members in classes.values()]


def _scopes(
    bundles: tuple[Bundle, Bundle], action: PolicyAction, actor: str
) -> Iterator[AccessScope]:
    """Examples of the places that an action can be about."""
    if action in SERVER_ACTIONS or action is PolicyAction.ADMIN:
        yield AccessScope()
        return
    rules = [rule for bundle in bundles for rule in bundle.rules if action in rule.actions]
    protected = [name for bundle in bundles for name in bundle.protected_branches]
    if action is PolicyAction.INVOKE_QUERY:
        for name in _examples((q for rule in rules for q in rule.queries), actor):
            yield AccessScope(query=name)
        return
    named = (b for rule in rules for b in (*rule.branches, *rule.target_branches))
    branches = _examples([*protected, *named], actor)
    if action in BRANCH_ACTIONS:
        types = _examples((t for rule in rules for t in rule.types), actor)
        for branch, type in product(branches, types):
            yield AccessScope(branch, type=type)
    elif action in TRANSITIONS:
        for branch, target in product(branches, branches):
            yield AccessScope(branch, target)
    elif action in TARGET_ACTIONS:
        for target in branches:
            yield AccessScope(target_branch=target)


def _examples(patterns: Iterable[str], actor: str) -> list[str]:
    found = [p.replace(OWN_ACTOR, actor).replace("*", ELSEWHERE) for p in patterns]
    return [*dict.fromkeys([*found, ELSEWHERE])]
