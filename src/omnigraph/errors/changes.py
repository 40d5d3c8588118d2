"""Errors of the change feed."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class ChangesRefused(OmnigraphError):
    """A commit without a parent, or one that changed the schema of a type with entities."""

    code = "change_diff_refusal"
    wire_member = "change_diff_refusal"
    wire_names = ("reason", "graph_commit_id", "type_name")
    status = 409
    default_remedy = "Capture a new baseline and continue from its cursor."

    def __init__(self, reason: str, commit_id: str, type_name: str | None = None) -> None:
        about = "" if type_name is None else f" of {type_name}"
        texts = {
            "parentless_commit": "it is the first commit of the graph",
            "schema_boundary": f"it changes the schema{about}",
        }
        super().__init__(
            f"commit {commit_id} has no entity changes to show: {texts[reason]}",
            details={"reason": reason, "graph_commit_id": commit_id}
            | ({} if type_name is None else {"type_name": type_name}),
        )
        self.reason = reason


class ChangeFeedGap(OmnigraphError):
    """The changes of a commit were removed by cleanup."""

    code = "change_feed_gap"
    wire_member = "change_feed_gap"
    wire_names = ("cursor", "first_unreadable_commit_id")
    status = 410
    default_remedy = "Capture a new baseline and continue from its cursor."

    def __init__(self, commit_id: str, cursor: str | None = None) -> None:
        super().__init__(
            f"the changes of commit {commit_id} can no longer be read: cleanup removed them",
            details={"first_unreadable_commit_id": commit_id}
            | ({} if cursor is None else {"cursor": cursor}),
        )
