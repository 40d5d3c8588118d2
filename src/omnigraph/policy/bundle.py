"""Bundles of rules as values, and as the YAML that people write.

Version 1 is the format of the original. Version 2 adds ``deny`` rules, patterns of branches, rules
for types and for stored queries, and required approvals. Owns the meaning of the file; it must
never decide a question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.errors import InvalidInput
from omnigraph.policy.access import (
    BRANCH_ACTIONS,
    SERVER_ACTIONS,
    TARGET_ACTIONS,
    TRANSITIONS,
    PolicyAction,
)
from omnigraph.policy.strict_yaml import (
    DocumentReader,
    Problem,
    YamlError,
    join,
    load_document,
)

BranchScope = Literal["any", "protected", "unprotected"]
BundleKind = Literal["graph", "server"]

OWN_ACTOR: Final = "{actor}"
"""In a pattern of version 2: the id of the actor who asks."""
_SCOPES: Final = ("any", "protected", "unprotected")
_TOP_1: Final = ("version", "groups", "protected_branches", "rules")
_TOP: Final[dict[int, tuple[str, ...]]] = {1: _TOP_1, 2: (*_TOP_1, "required_approvals")}
_BODY_1: Final = ("actors", "actions", "branch_scope", "target_branch_scope")
_BODY: Final[dict[int, tuple[str, ...]]] = {
    1: _BODY_1,
    2: (*_BODY_1, "branches", "target_branches", "types", "queries"),
}
APPROVALS_MAX: Final = 100
"""More people than that approve nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: an effect for a group, some actions, and a scope."""

    id: str
    allows: bool
    group: str
    actions: tuple[PolicyAction, ...]
    branch_scope: BranchScope | None = None
    target_branch_scope: BranchScope | None = None
    branches: tuple[str, ...] = ()
    target_branches: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """How many members of a group must approve a merge into some branches."""

    id: str
    target_branches: tuple[str, ...]
    approvals: int
    approvers: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A policy: who belongs to which group, and the rules."""

    version: int
    groups: dict[str, tuple[str, ...]]
    protected_branches: tuple[str, ...]
    rules: tuple[Rule, ...]
    required_approvals: tuple[ApprovalRule, ...] = ()
    digest: str = ""

    @property
    def kind(self) -> BundleKind:
        """What the bundle is about: graphs, or the server."""
        acts = {action for rule in self.rules for action in rule.actions}
        return "server" if acts and acts <= SERVER_ACTIONS else "graph"

    @property
    def actors(self) -> list[str]:
        """Every actor of any group, in order."""
        return sorted({actor for members in self.groups.values() for actor in members})

    @property
    def has_type_rules(self) -> bool:
        return any(rule.types for rule in self.rules)


def parse_bundle(text: str | bytes, name: str = "<policy>") -> Bundle:
    """The bundle of a file.

    Raises:
        InvalidInput: It is not a valid bundle; every problem is listed.
    """
    data = text.encode() if isinstance(text, str) else text
    try:
        document = load_document(data)
    except YamlError as error:
        raise _refused(name, [Problem("", str(error))]) from None
    reader = DocumentReader()
    bundle = _bundle(reader, document, hashlib.sha256(data).hexdigest())
    if bundle is None or reader.problems:
        raise _refused(name, reader.problems)
    return bundle


def _refused(name: str, problems: Sequence[Problem]) -> InvalidInput:
    return InvalidInput(
        f"{name} is not a valid policy: " + "; ".join(str(one) for one in problems),
        remedy="Correct the listed places; the reference of policies has the format.",
        details={"problems": [{"path": one.path, "message": one.message} for one in problems]},
    )


def _bundle(reader: DocumentReader, document: Any, digest: str) -> Bundle | None:
    version = document.get("version") if isinstance(document, dict) else None
    if not isinstance(document, dict):
        reader.mapping("", document)
        return None
    if isinstance(version, bool) or version not in _TOP:
        reader.problem("version", f"must be 1 or 2, not {version!r}")
        return None
    top = reader.mapping("", document, _TOP[version])
    groups = {
        name: reader.texts(f"groups.{name}", members)
        for name, members in reader.mapping("groups", top.get("groups", {})).items()
    }
    for name, members in groups.items():
        if not name.strip():
            reader.problem("groups", "a group must have a name")
        if not members:
            reader.problem(f"groups.{name}", "must not be empty")
        for actor in sorted({one for one in members if members.count(one) > 1}):
            reader.problem(f"groups.{name}", f"names {actor!r} twice")
    rules = _rules(reader, top.get("rules", []), version, groups)
    kinds = {action in SERVER_ACTIONS for rule in rules for action in rule.actions}
    if len(kinds) > 1:
        reader.problem("rules", "graph_list and actions on graphs cannot be in one bundle")
    return Bundle(
        version,
        groups,
        reader.texts("protected_branches", top.get("protected_branches", [])),
        tuple(rules),
        tuple(_approvals(reader, top.get("required_approvals", []), groups)),
        digest,
    )


def _rules(
    reader: DocumentReader, given: Any, version: int, groups: dict[str, tuple[str, ...]]
) -> list[Rule]:
    found: list[Rule] = []
    effects = ("allow",) if version == 1 else ("allow", "deny")
    for path, item in _items(reader, "rules", given):
        rule = reader.mapping(path, item, ("id", *effects))
        id = _unique_id(reader, path, rule.get("id"), [one.id for one in found])
        effect = [name for name in effects if name in rule]
        if len(effect) != 1:
            reader.problem(path, f"must have {' or '.join(effects)}, and one of them only")
            continue
        at = join(path, effect[0])
        body = reader.mapping(at, rule[effect[0]], _BODY[version])
        group = _group(reader, f"{at}.actors", body.get("actors"), groups)
        actions = _actions(reader, f"{at}.actions", body.get("actions"))
        made = Rule(
            id or "",
            effect[0] == "allow",
            group or "",
            actions,
            _scope(reader, f"{at}.branch_scope", body.get("branch_scope")),
            _scope(reader, f"{at}.target_branch_scope", body.get("target_branch_scope")),
            *(
                reader.texts(join(at, key), body[key]) if key in body else ()
                for key in ("branches", "target_branches", "types", "queries")
            ),
        )
        _check_scopes(reader, at, made, body, version)
        found.append(made)
    return found


def _check_scopes(
    reader: DocumentReader, path: str, rule: Rule, body: dict[str, Any], version: int
) -> None:
    """A scope stands only where every action of the rule has one."""
    from_branch = BRANCH_ACTIONS if version == 1 else BRANCH_ACTIONS | TRANSITIONS
    allowed = {
        "branch_scope": BRANCH_ACTIONS,
        "target_branch_scope": TARGET_ACTIONS,
        "branches": from_branch,
        "target_branches": TARGET_ACTIONS,
        "types": BRANCH_ACTIONS,
        "queries": frozenset({PolicyAction.INVOKE_QUERY}),
    }
    for key, actions in allowed.items():
        if key not in body:
            continue
        others = [str(action) for action in rule.actions if action not in actions]
        if others:
            reader.problem(join(path, key), f"does not apply to {', '.join(others)}")
        if body[key] == []:
            reader.problem(join(path, key), "must not be empty; leave it out to mean all")
    if version == 1 and "branch_scope" in body and "target_branch_scope" in body:
        reader.problem(path, "branch_scope and target_branch_scope cannot be combined")


def _actions(reader: DocumentReader, path: str, given: Any) -> tuple[PolicyAction, ...]:
    names = reader.texts(path, given)
    if not names and isinstance(given, list):
        reader.problem(path, "must name at least one action")
    found = []
    for name in names:
        if name not in set(PolicyAction):
            reader.problem(path, f"unknown action {name!r}; known: {', '.join(PolicyAction)}")
        else:
            found.append(PolicyAction(name))
    server = [action for action in found if action in SERVER_ACTIONS]
    if server and len(server) < len(found):
        reader.problem(path, "graph_list cannot be combined with actions on graphs")
    return tuple(dict.fromkeys(found))


def _scope(reader: DocumentReader, path: str, given: Any) -> BranchScope | None:
    if given is None:
        return None
    if given not in _SCOPES:
        reader.problem(path, f"must be one of {', '.join(_SCOPES)}, not {given!r}")
        return None
    scope: BranchScope = given
    return scope


def _group(
    reader: DocumentReader, path: str, given: Any, groups: dict[str, tuple[str, ...]]
) -> str | None:
    actors = reader.mapping(path, given, ("group",))
    if "group" not in actors:
        reader.problem(path, "must name a group")
        return None
    name = reader.text(f"{path}.group", actors["group"])
    if name is not None and name not in groups:
        reader.problem(f"{path}.group", f"there is no group {name!r}")
    return name


def _approvals(
    reader: DocumentReader, given: Any, groups: dict[str, tuple[str, ...]]
) -> list[ApprovalRule]:
    found: list[ApprovalRule] = []
    keys = ("id", "target_branches", "approvals", "approvers")
    for path, item in _items(reader, "required_approvals", given):
        rule = reader.mapping(path, item, keys)
        id = _unique_id(reader, path, rule.get("id"), [one.id for one in found])
        targets = reader.texts(f"{path}.target_branches", rule.get("target_branches"))
        if not targets:
            reader.problem(f"{path}.target_branches", "must name at least one branch")
        count = reader.whole(f"{path}.approvals", rule.get("approvals"), 1)
        group = _group(reader, f"{path}.approvers", rule.get("approvers"), groups)
        if count is not None and group in groups and count > len(groups[group]):
            reader.problem(f"{path}.approvals", f"the group {group!r} has fewer members")
        if count is not None and count > APPROVALS_MAX:
            reader.problem(f"{path}.approvals", f"must be at most {APPROVALS_MAX}")
        found.append(ApprovalRule(id or "", targets, count or 1, group or ""))
    return found


def _items(reader: DocumentReader, path: str, given: Any) -> list[tuple[str, Any]]:
    if not isinstance(given, list):
        reader.problem(path, "must be a list")
        return []
    return [(f"{path}[{index}]", item) for index, item in enumerate(given)]


def _unique_id(reader: DocumentReader, path: str, given: Any, taken: Sequence[str]) -> str | None:
    id = reader.text(f"{path}.id", given)
    if id is not None and id in taken:
        reader.problem(f"{path}.id", f"the id {id!r} stands twice")
    return id
