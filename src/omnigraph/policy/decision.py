"""Decisions: may this actor do this, and which rule says so.

Cedar holds the interpreter lock while it evaluates, so decisions are cached by actor, action and
scope; a bundle has an evaluator of its own, and so a cache of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from omnigraph.errors import Forbidden
from omnigraph.model.lru import LruCache
from omnigraph.policy.access import SERVER_ACTIONS, AccessScope, PolicyAction
from omnigraph.policy.bundle import OWN_ACTOR, ApprovalRule, Bundle, parse_bundle
from omnigraph.policy.cedar import CedarAnswer, CedarPolicies

SERVER_ROOT: Final = "root"
DECISIONS_MAX: Final = 16_384
"""Cached decisions of one bundle: some hundred bytes each."""


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The answer to one question."""

    allowed: bool
    actor: str | None
    action: PolicyAction
    scope: AccessScope
    rule: str | None
    """The smallest id of the rules that decided; None where no rule matched."""
    message: str

    def to_json(self) -> dict[str, Any]:
        scope = self.scope
        optional = {
            "branch": scope.branch,
            "target_branch": scope.target_branch,
            "type": scope.type,
            "query": scope.query,
            "matched_rule": self.rule,
        }
        return {
            "decision": "allow" if self.allowed else "deny",
            "actor": self.actor,
            "action": str(self.action),
            **{key: value for key, value in optional.items() if value is not None},
            "message": self.message,
        }


class PolicyEvaluator:
    """Decides by one bundle for one graph, or for the server. Thread-safe; can be pickled."""

    def __init__(self, bundle: Bundle, graph_id: str | None = None) -> None:
        self.bundle = bundle
        self.graph_id = graph_id
        resource = SERVER_ROOT if bundle.kind == "server" else graph_id or ""
        self._policies = CedarPolicies(bundle, resource)
        self._policies.validate()
        self._actors = frozenset(bundle.actors)
        self._cache: LruCache[tuple[str, PolicyAction, AccessScope], PolicyDecision] = LruCache(
            DECISIONS_MAX
        )

    @classmethod
    def of_text(
        cls, text: str | bytes, graph_id: str | None = None, name: str = "<policy>"
    ) -> PolicyEvaluator:
        """An evaluator of a bundle as it is written."""
        return cls(parse_bundle(text, name), graph_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return PolicyEvaluator, (self.bundle, self.graph_id)

    @cached_property
    def cedar_text(self) -> str:
        """The bundle as Cedar policies."""
        return self._policies.text

    def decide(self, actor: str | None, action: PolicyAction, scope: AccessScope) -> PolicyDecision:
        """Answer one question."""
        if actor is None or actor not in self._actors:
            about = "without an actor" if actor is None else f"for unknown actor '{actor}'"
            return PolicyDecision(
                False, actor, action, scope, None, f"policy denied action '{action}' {about}"
            )
        key = (actor, action, scope)
        found = self._cache.get(key)
        if found is None:
            found = self._decided(actor, action, scope)
            self._cache.put(key, found)
        return found

    def require(
        self, actor: str | None, action: PolicyAction, scope: AccessScope
    ) -> PolicyDecision:
        """The decision where it allows the action.

        Raises:
            Forbidden: It does not.
        """
        decision = self.decide(actor, action, scope)
        if not decision.allowed:
            raise denied(decision)
        return decision

    def is_protected(self, branch: str | None) -> bool:
        """Whether the bundle calls a branch protected; patterns count in version 2."""
        if branch is None:
            return False
        protected = self.bundle.protected_branches
        if self.bundle.version == 1:
            return branch in protected
        return any(matches_pattern(branch, pattern) for pattern in protected)

    def required_approvals(self, target: str) -> list[ApprovalRule]:
        """What a merge into a branch needs besides the right to merge."""
        return [
            rule
            for rule in self.bundle.required_approvals
            if any(matches_pattern(target, pattern) for pattern in rule.target_branches)
        ]

    def denied_types(
        self, actor: str | None, action: PolicyAction, branch: str | None, types: Iterable[str]
    ) -> frozenset[str]:
        """Those of the types that the actor may not read, export or change on a branch."""
        if not self.bundle.has_type_rules:
            return frozenset()
        return frozenset(
            name
            for name in types
            if not self.decide(actor, action, AccessScope(branch, type=name)).allowed
        )

    def _decided(self, actor: str, action: PolicyAction, scope: AccessScope) -> PolicyDecision:
        if (action in SERVER_ACTIONS) != (self.bundle.kind == "server"):
            verdict = CedarAnswer(
                False, ()
            )  # a bundle says nothing about actions of the other kind
        else:
            verdict = self._policies.decide(
                actor,
                action,
                scope,
                self.is_protected(scope.branch),
                self.is_protected(scope.target_branch),
            )
        rule = verdict.rules[0] if verdict.rules else None
        if verdict.allowed:
            message = f"policy allowed action '{action}'{described(scope)} for actor '{actor}'"
        else:
            message = f"policy denied action '{action}'{described(scope)} for actor '{actor}'"
        return PolicyDecision(verdict.allowed, actor, action, scope, rule, message)


def denied(decision: PolicyDecision) -> Forbidden:
    """The error of a denial."""
    scope = decision.scope
    details = {
        "action": str(decision.action),
        "actor": decision.actor,
        "branch": scope.branch,
        "target_branch": scope.target_branch,
        "type": scope.type,
        "query": scope.query,
        "rule": decision.rule,
    }
    known = {key: value for key, value in details.items() if value is not None}
    return Forbidden(decision.message, details=known)


def described(scope: AccessScope) -> str:
    """The parts of a scope that are known, as messages show them."""
    parts = (
        ("on branch", scope.branch),
        ("targeting branch", scope.target_branch),
        ("on type", scope.type),
        ("of query", scope.query),
    )
    return "".join(f" {words} '{value}'" for words, value in parts if value is not None)


def matches_pattern(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern, in which ``*`` stands for any text, also none.

    ``{actor}`` has no meaning here: protections and approvals are the same for everybody.
    """
    if OWN_ACTOR in pattern or "*" not in pattern:
        return text == pattern
    first, *middle, last = pattern.split("*")
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
