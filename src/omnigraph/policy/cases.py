"""Expected decisions in a file, and which of them a bundle does not give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from omnigraph.errors import InvalidInput
from omnigraph.policy.access import AccessScope, PolicyAction
from omnigraph.policy.decision import PolicyDecision, PolicyEvaluator
from omnigraph.policy.strict_yaml import DocumentReader, YamlError, load_document

_KEYS: Final = ("id", "actor", "action", "branch", "target_branch", "type", "query", "expect")


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One question, and the answer that is expected."""

    id: str
    actor: str
    action: PolicyAction
    scope: AccessScope
    allowed: bool


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case, and what the bundle says."""

    case: PolicyCase
    decision: PolicyDecision

    @property
    def passed(self) -> bool:
        return self.case.allowed == self.decision.allowed

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.case.id,
            "passed": self.passed,
            "expect": "allow" if self.case.allowed else "deny",
            **self.decision.to_json(),
        }


def parse_cases(data: bytes, name: str) -> list[PolicyCase]:
    """The cases of a file.

    Raises:
        InvalidInput: It is no valid file of cases; every problem is listed.
    """
    reader = DocumentReader()
    found: list[PolicyCase] = []
    try:
        document = load_document(data)
    except YamlError as error:
        reader.problem("", str(error))
        document = {"version": 1, "cases": []}
    top = reader.mapping("", document, ("version", "cases"))
    if top.get("version") != 1:
        reader.problem("version", f"must be 1, not {top.get('version')!r}")
    items = top.get("cases")
    if not isinstance(items, list):
        reader.problem("cases", "must be a list")
        items = []
    for index, item in enumerate(items):
        made = _case(reader, f"cases[{index}]", item)
        if made is None:
            continue
        if any(made.id == other.id for other in found):
            reader.problem(f"cases[{index}].id", f"the id {made.id!r} stands twice")
        found.append(made)
    if reader.problems:
        raise InvalidInput(
            f"{name} is no valid file of cases: " + "; ".join(map(str, reader.problems)),
            remedy="Correct the listed places.",
        )
    return found


def run_cases(evaluator: PolicyEvaluator, cases: list[PolicyCase]) -> list[CaseResult]:
    """Every case with the decision of the bundle."""
    return [
        CaseResult(case, evaluator.decide(case.actor, case.action, case.scope)) for case in cases
    ]


def _case(reader: DocumentReader, path: str, item: Any) -> PolicyCase | None:
    before = len(reader.problems)
    given = reader.mapping(path, item, _KEYS)
    id = reader.text(f"{path}.id", given.get("id"))
    actor = reader.text(f"{path}.actor", given.get("actor"))
    action = given.get("action")
    if action not in set(PolicyAction):
        reader.problem(
            f"{path}.action", f"unknown action {action!r}; known: {', '.join(PolicyAction)}"
        )
    expect = given.get("expect")
    if expect not in ("allow", "deny"):
        reader.problem(f"{path}.expect", f"must be allow or deny, not {expect!r}")
    places = {
        key: reader.text(f"{path}.{key}", given[key])
        for key in ("branch", "target_branch", "type", "query")
        if given.get(key) is not None
    }
    if len(reader.problems) > before:
        return None
    return PolicyCase(
        str(id), str(actor), PolicyAction(str(action)), AccessScope(**places), expect == "allow"
    )
