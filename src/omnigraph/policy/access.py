"""What a caller does, and to what: the values that every decision is about.

The server, the handle and the command line use these; they name no rule and decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class PolicyAction(StrEnum):
    """What a call does, in the words of a bundle."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    ADMIN = "admin"
    INVOKE_QUERY = "invoke_query"
    GRAPH_LIST = "graph_list"


SERVER_ACTIONS: Final = frozenset({PolicyAction.GRAPH_LIST})
GRAPH_ACTIONS: Final = frozenset(PolicyAction) - SERVER_ACTIONS
BRANCH_ACTIONS: Final = frozenset({PolicyAction.READ, PolicyAction.EXPORT, PolicyAction.CHANGE})
"""Actions on one branch."""
TARGET_ACTIONS: Final = frozenset(
    {
        PolicyAction.SCHEMA_APPLY,
        PolicyAction.BRANCH_CREATE,
        PolicyAction.BRANCH_DELETE,
        PolicyAction.BRANCH_MERGE,
    }
)
"""Actions with a target branch."""
TRANSITIONS: Final = frozenset({PolicyAction.BRANCH_CREATE, PolicyAction.BRANCH_MERGE})
"""Actions from one branch to another."""


@dataclass(frozen=True, slots=True)
class AccessScope:
    """What an action is about.

    ``type`` is the name of a node or edge type. Without one, the question is whether the action is
    allowed at all; the types are asked for when they are known.
    """

    branch: str | None = None
    target_branch: str | None = None
    type: str | None = None
    query: str | None = None


EVERYWHERE: Final = AccessScope()
