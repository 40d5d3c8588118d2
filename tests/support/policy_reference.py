"""Decisions of a policy from its plain text, written without any code of ``omnigraph.policy``.

The oracle of the differential test: it interprets the document as the rules of docs/spec say.
"""

from __future__ import annotations

import re
from typing import Any

GRAPH_ONLY = {
    "read", "export", "change", "schema_apply", "branch_create",
    "branch_delete", "branch_merge", "admin", "invoke_query",
}  # fmt: skip


def decide(
    document: dict[str, Any],
    actor: str,
    action: str,
    branch: str | None = None,
    target: str | None = None,
    type: str | None = None,
    query: str | None = None,
) -> tuple[bool, str | None]:
    """Whether the action is allowed, and the smallest id of the rules that decide it."""
    version = document["version"]
    groups = {name for name, members in document["groups"].items() if actor in members}
    if not groups:
        return False, None
    allows, denials = [], []
    for rule in document["rules"]:
        effect = "allow" if "allow" in rule else "deny"
        body = rule[effect]
        if body["actors"]["group"] not in groups or action not in body["actions"]:
            continue
        if not _scope(document, version, body.get("branch_scope"), branch):
            continue
        if not _scope(document, version, body.get("target_branch_scope"), target):
            continue
        if "branches" in body and not _any(body["branches"], branch, actor):
            continue
        if "target_branches" in body and not _any(body["target_branches"], target, actor):
            continue
        missing = effect == "allow"
        if "types" in body and not (missing if type is None else _any(body["types"], type, None)):
            continue
        if "queries" in body and not (
            missing if query is None else _any(body["queries"], query, None)
        ):
            continue
        (allows if effect == "allow" else denials).append(rule["id"])
    if denials:
        return False, min(denials)
    return bool(allows), min(allows, default=None)


def _scope(document: dict[str, Any], version: int, scope: str | None, branch: str | None) -> bool:
    if scope in (None, "any"):
        return True
    if branch is None:
        return False
    names = document.get("protected_branches", [])
    protected = branch in names if version == 1 else _any(names, branch, None)
    return protected == (scope == "protected")


def _any(patterns: list[str], text: str | None, actor: str | None) -> bool:
    if text is None:
        return False
    return any(_matches(pattern, text, actor) for pattern in patterns)


def _matches(pattern: str, text: str, actor: str | None) -> bool:
    parts = []
    for part in re.split(r"(\*|\{actor\})", pattern):
        if part == "*":
            parts.append(".*")
        elif part == "{actor}" and actor is not None:
            parts.append(re.escape(actor))
        else:
            parts.append(re.escape(part))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None
