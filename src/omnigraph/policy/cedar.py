"""A bundle as Cedar policies, and Cedar's answers.

Every (rule, action) becomes one Cedar policy whose ``@id`` is ``<rule>:<action>``. The policies are
validated strictly against a schema before anything is decided. Owns the translation; the decisions
are Cedar's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import cedarpy

from omnigraph.errors import InvalidInput, OmnigraphError
from omnigraph.policy.access import SERVER_ACTIONS, AccessScope, PolicyAction
from omnigraph.policy.bundle import OWN_ACTOR, Bundle, Rule

_NAMESPACE: Final = "Omnigraph"
_CONTEXT: Final = {
    "has_branch": "Boolean",
    "branch": "String",
    "has_target_branch": "Boolean",
    "target_branch": "String",
    "branch_is_protected": "Boolean",
    "target_branch_is_protected": "Boolean",
    "has_type": "Boolean",
    "type": "String",
    "has_query": "Boolean",
    "query": "String",
}


@dataclass(frozen=True, slots=True)
class CedarAnswer:
    """What Cedar says, and the ids of the rules that decided it."""

    allowed: bool
    rules: tuple[str, ...]


@dataclass(frozen=True)
class CedarPolicies:
    """The compiled policies of one bundle for one resource. Parsed once; thread-safe."""

    bundle: Bundle
    resource: str

    @cached_property
    def text(self) -> str:
        """The policies as Cedar text."""
        return "\n".join(self._statements())

    def validate(self) -> None:
        """Raise unless the policies are valid under the schema."""
        result = cedarpy.validate_policies(self.text, _schema())
        if not result.validation_passed:
            raise InvalidInput(
                "the policy cannot be compiled: " + "; ".join(str(one) for one in result.errors),
                remedy="Correct the rule that is named.",
            )

    def decide(
        self, actor: str, action: PolicyAction, scope: AccessScope, protected: bool, target: bool
    ) -> CedarAnswer:
        """Cedar's answer for an actor of some group; the flags say which branches are protected."""
        request = {
            "principal": {"type": f"{_NAMESPACE}::Actor", "id": actor},
            "action": {"type": f"{_NAMESPACE}::Action", "id": str(action)},
            "resource": {"type": self._resource_type, "id": self.resource},
            "context": {
                "has_branch": scope.branch is not None,
                "branch": scope.branch or "",
                "has_target_branch": scope.target_branch is not None,
                "target_branch": scope.target_branch or "",
                "branch_is_protected": protected,
                "target_branch_is_protected": target,
                "has_type": scope.type is not None,
                "type": scope.type or "",
                "has_query": scope.query is not None,
                "query": scope.query or "",
            },
        }
        policies, entities, schema = self._handles
        answer = cedarpy.is_authorized(request, policies, entities, schema)
        diagnostics = answer.diagnostics
        if diagnostics.errors or answer.decision is cedarpy.Decision.NoDecision:
            raise OmnigraphError(
                f"the policy could not be evaluated: {'; '.join(map(str, diagnostics.errors))}",
                remedy="Check the policy with `omnigraph policy validate`.",
            )
        ids = diagnostics.id_annotations_by_reason.values()
        return CedarAnswer(answer.allowed, tuple(sorted({id.rpartition(":")[0] for id in ids})))

    @cached_property
    def _handles(self) -> tuple[Any, Any, Any]:
        schema = cedarpy.Schema.from_json_str(json.dumps(_schema()))
        return (
            cedarpy.PolicySet.from_str(self.text),
            cedarpy.Entities.from_json_str(json.dumps(self._entities()), schema),
            schema,
        )

    @property
    def _resource_type(self) -> str:
        return f"{_NAMESPACE}::{'Server' if self.bundle.kind == 'server' else 'Graph'}"

    def _entities(self) -> list[dict[str, Any]]:
        groups = self.bundle.groups
        found: list[dict[str, Any]] = [_entity("Group", name) for name in groups]
        for actor in self.bundle.actors:
            member_of = [name for name, members in groups.items() if actor in members]
            found.append(_entity("Actor", actor, member_of))
        found.append(_entity(self._resource_type.rpartition(":")[2], self.resource))
        return found

    def _statements(self) -> Iterator[str]:
        for rule in self.bundle.rules:
            own = any(OWN_ACTOR in one for one in (*rule.branches, *rule.target_branches))
            for action in rule.actions:
                if own:  # Cedar's patterns are literals: one policy for each member
                    for actor in dict.fromkeys(self.bundle.groups[rule.group]):
                        who = f"principal == {_uid('Actor', actor)}"
                        yield self._statement(rule, action, who, actor)
                else:
                    yield self._statement(rule, action, f"principal in {_uid('Group', rule.group)}")

    def _statement(self, rule: Rule, action: PolicyAction, who: str, actor: str = "") -> str:
        effect = "permit" if rule.allows else "forbid"
        resource = f"{self._resource_type}::{quoted(self.resource)}"
        conditions = [part for part in _conditions(rule, action, actor) if part]
        when = f" when {{ {' && '.join(conditions)} }}" if conditions else ""
        return (
            f"@id({quoted(f'{rule.id}:{action}')})\n"
            f"{effect}({who}, action == {_uid('Action', action)}, resource == {resource}){when};"
        )


def _conditions(rule: Rule, action: PolicyAction, actor: str) -> Iterator[str]:
    yield _protection("branch", rule.branch_scope)
    yield _protection("target_branch", rule.target_branch_scope)
    yield _matches("branch", rule.branches, actor)
    yield _matches("target_branch", rule.target_branches, actor)
    # A question without a type asks whether anything of it is allowed; a denial of some types
    # does not answer that. The same holds for queries.
    for name, patterns in (("type", rule.types), ("query", rule.queries)):
        if patterns and rule.allows:
            yield f"(!context.has_{name} || {_any_like(name, patterns, '')})"
        else:
            yield _matches(name, patterns, "")


def _protection(name: str, scope: str | None) -> str:
    if scope in (None, "any"):
        return ""
    negation = "" if scope == "protected" else "!"
    return f"context.has_{name} && {negation}context.{name}_is_protected"


def _matches(name: str, patterns: tuple[str, ...], actor: str) -> str:
    return f"context.has_{name} && {_any_like(name, patterns, actor)}" if patterns else ""


def _any_like(name: str, patterns: tuple[str, ...], actor: str) -> str:
    return "(" + " || ".join(f"context.{name} like {like(p, actor)}" for p in patterns) + ")"


def like(pattern: str, actor: str) -> str:
    """A pattern of a bundle as one of Cedar: ``*`` stands for any text.

    The id of an actor is a text: an asterisk in it stands for itself.
    """
    parts = pattern.split(OWN_ACTOR)
    return '"' + _escaped(actor).replace("*", "\\*").join(_escaped(part) for part in parts) + '"'


def quoted(text: str) -> str:
    """A text as a Cedar string literal."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return "".join(
        f"\\u{{{ord(one):x}}}" if ord(one) < 32 or ord(one) > 126 or one in '"\\' else one
        for one in text
    )


def _uid(kind: str, id: str) -> str:
    return f"{_NAMESPACE}::{kind}::{quoted(id)}"


def _entity(kind: str, id: str, parents: Iterable[str] = ()) -> dict[str, Any]:
    return {
        "uid": {"type": f"{_NAMESPACE}::{kind}", "id": id},
        "attrs": {},
        "parents": [{"type": f"{_NAMESPACE}::Group", "id": name} for name in parents],
    }


def _schema() -> dict[str, Any]:
    context = {name: {"type": kind, "required": True} for name, kind in _CONTEXT.items()}
    return {
        _NAMESPACE: {
            "entityTypes": {
                "Actor": {"memberOfTypes": ["Group"]},
                "Group": {},
                "Graph": {},
                "Server": {},
            },
            "actions": {
                str(action): {
                    "appliesTo": {
                        "principalTypes": ["Actor"],
                        "resourceTypes": ["Server" if action in SERVER_ACTIONS else "Graph"],
                        "context": {"type": "Record", "attributes": context},
                    }
                }
                for action in PolicyAction
            },
        }
    }
