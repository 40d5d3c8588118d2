"""What the client of an MCP server may do, and how much one answer may hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from omnigraph.errors import Forbidden, InvalidInput

ROWS_MAX: Final = 200
"""Rows, changes or commits in one answer: more than a model reads with profit."""
BYTES_MAX: Final = 100_000
"""Bytes of JSON in one answer: some 25,000 tokens."""
RESULT_ROWS_MAX: Final = 100_000
"""Rows that a query may produce before one answer is cut from them."""
TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Bounds of one answer. ``timeout_ms`` 0 means no time-out."""

    rows_max: int = ROWS_MAX
    bytes_max: int = BYTES_MAX
    timeout_ms: int = TIMEOUT_MS

    def __post_init__(self) -> None:
        for name, least in (("rows_max", 1), ("bytes_max", 1_000), ("timeout_ms", 0)):
            if getattr(self, name) < least:
                raise InvalidInput(
                    f"{name} must be at least {least}, not {getattr(self, name)}",
                    remedy=f"Choose a larger {name}.",
                )


@dataclass(frozen=True, slots=True)
class McpAccess:
    """What the client may do.

    Attributes:
        read_only: Only the tools that read are offered.
        branch_prefix: Writes go only to branches whose names begin with this text; a merge into
            any other branch is for somebody else to make.
        actor: The author of every write; a client cannot name another one.
        limits: How much one answer may hold.
    """

    read_only: bool = False
    branch_prefix: str | None = None
    actor: str | None = None
    limits: AnswerLimits = field(default_factory=AnswerLimits)

    def __post_init__(self) -> None:
        if self.branch_prefix is not None and not self.branch_prefix.strip("/"):
            raise InvalidInput(
                f"the branch prefix {self.branch_prefix!r} allows every branch",
                remedy="Name the folder of the agent's branches, such as agents/one/.",
            )

    def require_own_branch(self, branch: str, doing: str) -> None:
        """Raise ``Forbidden`` unless the client may change the branch."""
        prefix = self.branch_prefix
        if prefix is None or branch.startswith(prefix):
            return
        raise Forbidden(
            f"this client may not {doing} branch {branch!r}: it writes only to branches that begin "
            f"with {prefix!r}",
            remedy=f"Create a branch such as {prefix}work with `branches_create` and write there.",
            details={"branch": branch, "branch_prefix": prefix},
        )

    def require_own_target(self, target: str) -> None:
        """Raise ``Forbidden`` unless the client may merge into the branch."""
        prefix = self.branch_prefix
        if prefix is None or target.startswith(prefix):
            return
        raise Forbidden(
            f"this client may not merge into branch {target!r}: it writes only to branches that "
            f"begin with {prefix!r}",
            remedy="Show the result of `merge_preview` to a person who may merge, and ask for it.",
            details={"branch": target, "branch_prefix": prefix},
        )
