"""What a caller may do: actions, scopes, and the one call that decides.

``Policy`` is the seam: a policy evaluator implements it. A policy sees the actor that the token
proves, never one that a request claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from omnigraph.errors import Forbidden, InvalidInput


class GraphAction(StrEnum):
    """What a request does, in the words of policies."""

    GRAPH_LIST = "graph_list"
    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    INVOKE_QUERY = "invoke_query"


READING: Final = frozenset(
    {GraphAction.GRAPH_LIST, GraphAction.READ, GraphAction.EXPORT, GraphAction.INVOKE_QUERY}
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What an action is about. Without a graph: the server itself."""

    graph_id: str | None = None
    branch: str | None = None
    target_branch: str | None = None


class Policy(Protocol):
    """Decides one action of one actor."""

    @property
    def needs_token(self) -> bool:
        """Whether a request without a valid token is refused with 401."""

    def allows(self, actor: str | None, action: GraphAction, scope: Scope) -> bool: ...


@dataclass(frozen=True, slots=True)
class Open:
    """No tokens, no policy: every action on graphs, but not the list of them."""

    needs_token: bool = False

    def allows(self, actor: str | None, action: GraphAction, scope: Scope) -> bool:
        return action is not GraphAction.GRAPH_LIST


@dataclass(frozen=True, slots=True)
class DefaultDeny:
    """Tokens, no policy: who has one may read."""

    needs_token: bool = True

    def allows(self, actor: str | None, action: GraphAction, scope: Scope) -> bool:
        return action is GraphAction.READ


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """The policy of ``omnigraph serve``: who has a token may do everything, or read everything."""

    read_only: bool = False
    needs_token: bool = True

    def allows(self, actor: str | None, action: GraphAction, scope: Scope) -> bool:
        return not self.read_only or action in READING


def choose_policy(
    *, tokens: bool, built_in: bool, unauthenticated: bool, read_only: bool
) -> Policy:
    """The run state of a server, decided once.

    Raises:
        InvalidInput: The server would be open by accident, or could answer nobody.
    """
    if built_in and unauthenticated:
        return BuiltIn(read_only, needs_token=False)
    if built_in and not tokens:
        raise InvalidInput(
            "there is a policy and no token: every request would be refused",
            remedy="Configure a bearer token, or start with --unauthenticated.",
        )
    if built_in:
        return BuiltIn(read_only)
    if tokens:
        return DefaultDeny()
    if not unauthenticated:
        raise InvalidInput(
            "there is neither a token nor a policy: the server would be open to everybody",
            remedy="Configure a bearer token, or start with --unauthenticated.",
        )
    return Open()


def require(policy: Policy, actor: str | None, action: GraphAction, scope: Scope) -> None:
    """Raise ``Forbidden`` unless the policy allows the action."""
    if policy.allows(actor, action, scope):
        return
    about = "" if scope.branch is None else f" on branch '{scope.branch}'"
    if scope.target_branch is not None:
        about += f" targeting branch '{scope.target_branch}'"
    by = "" if actor is None else f" for actor '{actor}'"
    raise Forbidden(f"policy denied action '{action}'{about}{by}", details={"action": str(action)})
