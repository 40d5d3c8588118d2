"""Conflicts with concurrent writes; nothing of the failed write is visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors.base import OmnigraphError


class Conflict(OmnigraphError):
    code = "conflict"
    status = 409
    retryable = True
    default_remedy = "Read the current state and try again."


class VersionConflict(Conflict):
    """A type was written concurrently between reading it and publishing."""

    code = "published_dataset_version_conflict"
    wire_member = "published_dataset_version_conflict"
    wire_names = (
        "entity_kind",
        "type_name",
        "expected_published_dataset_version",
        "actual_published_dataset_version",
    )
    default_remedy = "Nothing was written. Read the current state of the type and try again."

    def __init__(self, type_key: str, expected: int | None, actual: int | None) -> None:
        kind, _, name = type_key.partition(":")
        super().__init__(
            f"{kind} type {name} changed while it was being written "
            f"(expected version {expected}, found {actual})",
            details={
                "entity_kind": kind,
                "type_name": name,
                "expected_published_dataset_version": expected,
                "actual_published_dataset_version": actual,
            },
        )
        self.type_key = type_key
        self.expected = expected
        self.actual = actual


class ReadSetConflict(Conflict):
    """Something the write read, but did not write, has changed concurrently."""

    code = "read_set_conflict"
    wire_member = "read_set_conflict"
    wire_names = ("member", "expected", "actual")
    wire_nulls = frozenset({"expected", "actual"})
    default_remedy = "Nothing was written. Repeat the write on the current state."

    def __init__(self, member: str, expected: object, actual: object) -> None:
        super().__init__(
            f"{member} changed since this write read it (was {expected}, is {actual})",
            details={
                "member": member,
                "expected": None if expected is None else str(expected),
                "actual": None if actual is None else str(actual),
            },
        )
        self.member = member


class SchemaChanged(ReadSetConflict):
    code = "schema_changed"
    retryable = False
    default_remedy = "Read the input again under the new schema, then write it again."

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__("schema", expected, actual)


class KeyConflict(Conflict):
    code = "key_conflict"
    wire_member = "key_conflict"
    wire_names = ("entity_kind", "type_name", "entity_id")
    retryable = False
    default_remedy = (
        "Use `upsert` (sets given properties) or `replace` (the whole entity) for entities that "
        "may exist already; in a load, use mode `upsert` or `merge`."
    )

    def __init__(
        self,
        type_key: str,
        entity_id: str | None,
        *,
        violations: Sequence[Mapping[str, Any]] = (),
        total: int = 1,
    ) -> None:
        kind, _, name = type_key.partition(":")
        more = f" (and {total - 1} more)" if total > 1 else ""
        details = {"entity_kind": kind, "type_name": name, "entity_id": entity_id, "total": total}
        super().__init__(
            f"a {kind} of type {name} with id {entity_id!r} exists already{more}",
            details={**details, "violations": [dict(item) for item in violations]},
        )
        self.type_key = type_key
        self.entity_id = entity_id


class PreconditionFailed(Conflict):
    code = "precondition_failed"
    wire_member = "precondition_failure"
    wire_names = ("expected", "actual")
    status = 412
    retryable = False
    default_remedy = (
        "Nothing was written. Read the branch again and repeat the request with its current head."
    )

    def __init__(self, expected: str, actual: str | None, branch: str | None = None) -> None:
        details = {"branch": branch, "expected": expected, "actual": actual}
        super().__init__(
            f"the head of {branch or 'the branch'} is {actual}, not {expected} as required",
            details={name: value for name, value in details.items() if value is not None},
        )
        self.expected = expected
        self.actual = actual


class MergeConflicts(Conflict):
    """A merge with conflicts. ``conflicts`` lists all of them."""

    code = "merge_conflicts"
    retryable = False
    default_remedy = (
        "Nothing was changed. Resolve the conflicts one by one (--resolve FILE), or choose a side "
        "(--strategy ours|theirs)."
    )

    def __init__(
        self, doing: str, conflicts: Sequence[Mapping[str, Any]], *, remedy: str | None = None
    ) -> None:
        found = [dict(conflict) for conflict in conflicts]
        first = "; ".join(str(conflict["message"]) for conflict in found[:3])
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        super().__init__(
            f"{doing}: {len(found)} conflict{'s' if len(found) > 1 else ''}: {first}{more}",
            remedy=remedy,
            details={"merge_conflicts": found},
        )
        self.conflicts = found

    def facts(self) -> dict[str, Any]:
        return {"merge_conflicts": self.details.get("merge_conflicts", [])}


class PurgeRefused(Conflict):
    code = "purge_refused"
    default_remedy = (
        "Nothing was removed. Wait until the named operation has ended, then purge again."
    )


class BranchInUse(Conflict):
    code = "branch_in_use"
    retryable = False
    default_remedy = "Delete the branches and tags that depend on it first."


class BranchUnmerged(Conflict):
    code = "branch_unmerged"
    retryable = False
    default_remedy = "Merge the branch first, or delete it with --force (Python: force=True)."


class BranchProtected(Conflict):
    code = "branch_protected"
    status = 403
    retryable = False
    default_remedy = "Write to another branch and merge it, or remove the protection."


class SchemasDiffer(Conflict):
    code = "schemas_differ"
    retryable = False
    default_remedy = "Apply the same schema to both sides, then try again."


class ObjectChanged(Conflict):
    code = "object_changed"
    default_remedy = "Read the object again and repeat the change on its current content."


class Contention(Conflict):
    code = "contention"
    default_remedy = "Many writers are active: wait and try again."


class OwnershipLost(Conflict):
    """This process was paused for longer than its lease, and another process resolved its write."""

    code = "ownership_lost"
    default_remedy = (
        "Look up the commit id before repeating the write: another process has completed it or "
        "rolled it back."
    )
