"""Every error a user can meet, as one tree.

    OmnigraphError
    ├── InvalidInput                 the request itself is wrong; repeating it cannot help
    │   ├── LanguageError            schema or query text that cannot be used
    │   │   ├── SourceError          with every finding and its place (in ``omnigraph.syntax``)
    │   │   └── ParameterError       values that do not fit the parameters of a query
    │   ├── InvalidValue             a value that does not fit its declared type
    │   ├── InvalidData              records that cannot be read or do not fit, all of them listed
    │   │   └── ConstraintViolation  readable data that breaks the schema's constraints
    │   ├── IdempotencyMismatch      an idempotency key used again for a different request
    │   ├── ExternalBlobDenied       a reference to bytes outside that this graph does not allow
    │   ├── BlobRangeInvalid         a range that lies outside the blob
    │   ├── UnsupportedLocation      a URI or a filesystem this program cannot use
    │   ├── CursorRejected           a cursor or page token of something else, or a damaged one
    │   ├── SchemaChangeRefused      a schema that this graph cannot be brought to as it is
    │   ├── NotAvailable             something this version of the program does not do
    │   └── ReadOnly                 a write through a handle opened read-only
    ├── NotFound                     something named does not exist
    │   ├── GraphNotFound            nothing at this location, or it is not a graph
    │   ├── BranchNotFound
    │   ├── CommitNotFound
    │   ├── TagNotFound
    │   ├── RefNotFound              neither a branch nor a tag, a commit or a time
    │   ├── HistoryReclaimed         an old state whose files were cleaned up
    │   │   └── HistoryPurged        an old state that a purge gave up, or is rewriting
    │   ├── TypeNotFound
    │   ├── QueryNotFound            the text holds no query of this name
    │   ├── EntityNotFound
    │   └── ObjectNotFound           an object of the store (control files)
    ├── AlreadyExists
    │   ├── GraphExists
    │   ├── BranchExists
    │   ├── TagExists
    │   ├── BackupRefused            a place that holds something else than this graph's backup
    │   └── ObjectExists
    ├── Conflict                     somebody else was there first; nothing of this write is visible
    │   ├── VersionConflict          a type was written by someone else since it was read
    │   ├── ReadSetConflict          something this write relied on has changed
    │   │   └── SchemaChanged        a write that was read under a schema the branch no longer has
    │   ├── KeyConflict              an entity with this id exists already
    │   ├── PreconditionFailed       the branch head is not the commit the caller expected
    │   ├── MergeConflicts           two sides of a merge cannot be brought together, all listed
    │   ├── PurgeRefused             what is to be purged is in use
    │   ├── BranchInUse              a branch that other branches or tags depend on
    │   ├── BranchUnmerged           a branch with commits that no other branch has
    │   ├── BranchProtected          a branch that does not allow this
    │   ├── SchemasDiffer            two sides of a merge have different schemas
    │   ├── ObjectChanged            a conditional replace of an object lost
    │   ├── Contention               too many writers for too long; trying again is right
    │   └── OwnershipLost            another process resolved this write while this one was paused
    ├── StorageFailure               the store said no, or nothing
    │   ├── PermissionDenied
    │   ├── StorageFull
    │   ├── OutputFailed             standard output could not be written
    │   ├── OutcomeUnknown           the request was sent, the answer never came; look the id up
    │   ├── ExternalBlobUnavailable  bytes outside the graph could not be fetched
    │   └── CorruptData              what was read is not what was written
    ├── RecoveryRequired             an unfinished write is in the way and cannot be resolved now
    ├── Drift                        a table moved without being published
    ├── ChangesRefused               a commit whose changes cannot be shown as changes of entities
    ├── ChangeFeedGap                history that a reader of changes needs was cleaned up
    ├── FormatUnsupported            the graph's format is too old or too new for this program
    ├── GraphMoved                   branches that refer to where the graph was before
    ├── ResourceLimit                a named limit was reached
    ├── QueryTimeout                 a query ran longer than it was allowed to
    ├── QueryCancelled               the caller no longer wanted the answer
    ├── SparkFailure                 a Spark job could not be carried out
    │   ├── SparkUnavailable         no session: not installed, no Java, no such cluster
    │   └── SparkStalled             a job made no progress for too long and was given up
    └── EmbeddingFailure             a text could not be turned into a vector

Each class has a stable ``code``, an HTTP ``status``, whether a plain retry may help, a ``details``
mapping with structured facts and a ``remedy``: one sentence that says what to do. This module
imports nothing, and nobody matches on message text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class OmnigraphError(Exception):
    """The root. Never raised itself."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    default_remedy: ClassVar[str] = "This is a defect in Omnigraph: please report it."

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy or self.default_remedy
        self.details: dict[str, Any] = dict(details or {})

    def to_json(self) -> dict[str, Any]:
        """The error as data: what ``--json`` prints."""
        body: dict[str, Any] = {
            "error": self.message,
            "code": self.code,
            "remedy": self.remedy,
            "retryable": self.retryable,
        }
        if self.details:
            body["details"] = self.details
        return body

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.remedy, self.details, self.__dict__))


def _rebuild(
    kind: type[OmnigraphError],
    message: str,
    remedy: str,
    details: dict[str, Any],
    state: dict[str, Any],
) -> OmnigraphError:
    """Rebuild an error in another process, whatever its constructor looks like."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    error.message, error.remedy, error.details = message, remedy, details
    return error


class InvalidInput(OmnigraphError):
    code = "bad_request"
    status = 400
    default_remedy = "Correct the request and send it again."


class LanguageError(InvalidInput):
    code = "language_error"
    default_remedy = "Correct the marked places in the text."


class ParameterError(LanguageError):
    """The values given to a query do not fit its parameters. ``problems`` holds all of them."""

    code = "invalid_parameters"
    default_remedy = "Give every required parameter a value of its declared type."

    def __init__(self, problems: Sequence[Mapping[str, Any]], *, remedy: str | None = None) -> None:
        message = "; ".join(str(problem["message"]) for problem in problems)
        super().__init__(message, remedy=remedy, details={"parameters": list(problems)})
        self.problems = tuple(problems)


class InvalidValue(InvalidInput):
    code = "invalid_value"
    default_remedy = "Give a value of the declared type."


class InvalidData(InvalidInput):
    """Records that cannot be read or whose values do not fit. Nothing was written.

    ``violations`` are the first ones found, each with its rule, type, id, property, file and line
    as far as they are known; ``total`` counts all of them.
    """

    code = "invalid_data"
    default_remedy = "Correct the listed records. Nothing was written."

    def __init__(
        self,
        message: str,
        *,
        violations: Sequence[Mapping[str, Any]] = (),
        total: int = 0,
        remedy: str | None = None,
    ) -> None:
        found = [dict(violation) for violation in violations]
        super().__init__(message, remedy=remedy, details={"total": total, "violations": found})
        self.violations = found
        self.total = total


class ConstraintViolation(InvalidData):
    """Data that can be read but breaks the schema's constraints."""

    code = "constraint_violation"
    default_remedy = "Change the data or the schema's constraints. Nothing was written."


class IdempotencyMismatch(InvalidInput):
    code = "idempotency_mismatch"
    status = 409
    default_remedy = "Use a fresh idempotency key for a different request."


class ExternalBlobDenied(InvalidInput):
    code = "external_blob_denied"
    default_remedy = "Store the bytes themselves (base64:…), or allow the base of this URI."


class BlobRangeInvalid(InvalidInput):
    code = "blob_range"
    status = 416
    default_remedy = "Ask for a range that starts inside the blob."

    def __init__(self, start: int, end: int | None, length: int) -> None:
        super().__init__(
            f"the range starts at {start}, and the blob has {length} bytes",
            details={"start": start, "end": end, "length": length},
        )


class UnsupportedLocation(InvalidInput):
    code = "unsupported_location"
    default_remedy = "Use a local path, a file:// URI or an s3:// URI."


class CursorRejected(InvalidInput):
    code = "cursor_rejected"
    default_remedy = "Start again without the token: it belongs to another request."


class SchemaChangeRefused(InvalidInput):
    code = "schema_change_refused"
    default_remedy = "`omnigraph schema plan` shows every step; nothing was changed."


class NotAvailable(InvalidInput):
    code = "not_available"
    status = 501
    default_remedy = "Use another way, or a newer version of Omnigraph."


class ReadOnly(InvalidInput):
    code = "read_only"
    default_remedy = "Open the graph without read_only=True to write to it."


class NotFound(OmnigraphError):
    code = "not_found"
    status = 404
    default_remedy = "Check the name."


class GraphNotFound(NotFound):
    code = "graph_not_found"
    default_remedy = "Create a graph there with `omnigraph init --schema FILE URI`."


class BranchNotFound(NotFound):
    code = "branch_not_found"
    default_remedy = "List the branches of the graph and use one of them."


class CommitNotFound(NotFound):
    code = "commit_not_found"
    default_remedy = "List commits with `omnigraph commit list` and use one of their ids."


class TagNotFound(NotFound):
    code = "tag_not_found"
    default_remedy = "List the tags with `omnigraph tag list` and use one of them."


class RefNotFound(NotFound):
    code = "ref_not_found"
    default_remedy = "Name a branch, a tag, a commit id or a time such as 2026-05-01T12:00:00Z."


class HistoryReclaimed(NotFound):
    code = "history_reclaimed"
    status = 410
    default_remedy = "Use a newer commit; tags keep the commits that will be needed."


class HistoryPurged(HistoryReclaimed):
    code = "history_purged"
    default_remedy = (
        "Use a newer commit. If a purge was interrupted, run it again: it goes on where it stopped."
    )


class TypeNotFound(NotFound):
    code = "type_not_found"
    default_remedy = "Show the schema's types with `omnigraph snapshot`."


class QueryNotFound(NotFound):
    code = "query_not_found"
    default_remedy = "Use the name of a query in the text."


class EntityNotFound(NotFound):
    code = "entity_not_found"
    default_remedy = "Check the entity's type and id, and the branch or commit being read."


class ObjectNotFound(NotFound):
    code = "object_not_found"
    default_remedy = "The object may have been removed by another process: refresh and try again."


class AlreadyExists(OmnigraphError):
    code = "already_exists"
    status = 409
    default_remedy = "Use another name, or use what exists."


class GraphExists(AlreadyExists):
    code = "graph_exists"
    default_remedy = "Open the existing graph, or choose another location."


class BranchExists(AlreadyExists):
    code = "branch_exists"
    default_remedy = "Use the existing branch, or choose another name."


class TagExists(AlreadyExists):
    code = "tag_exists"
    default_remedy = "Choose another name, or move the tag with --force."


class BackupRefused(AlreadyExists):
    code = "backup_refused"
    default_remedy = "Use an empty place, or for a backup an earlier backup of this very graph."


class ObjectExists(AlreadyExists):
    code = "object_exists"
    default_remedy = "Another process created the object first: read it instead."


class Conflict(OmnigraphError):
    code = "conflict"
    status = 409
    retryable = True
    default_remedy = "Read the current state and try again."


class VersionConflict(Conflict):
    """A type moved between reading it and publishing: exactly one writer won, and it was not us."""

    code = "published_dataset_version_conflict"
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
    """Something the write read, but did not write, has changed since."""

    code = "read_set_conflict"
    default_remedy = "Nothing was written. Prepare the write again on the current state."

    def __init__(self, member: str, expected: object, actual: object) -> None:
        super().__init__(
            f"what this write relied on has changed: {member} (was {expected}, is {actual})",
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
    retryable = False
    default_remedy = (
        "Use `upsert` (sets what is given) or `replace` (the whole entity) for entities that may "
        "exist already; in a load, mode `upsert` or `merge`."
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
    status = 412
    retryable = False
    default_remedy = "Nothing was written. Read the branch again and decide on its current head."

    def __init__(self, expected: str, actual: str | None, branch: str | None = None) -> None:
        details = {"branch": branch, "expected": expected, "actual": actual}
        super().__init__(
            f"the head of {branch or 'the branch'} is {actual}, not {expected} as required",
            details={name: value for name, value in details.items() if value is not None},
        )
        self.expected = expected
        self.actual = actual


class MergeConflicts(Conflict):
    """A merge that cannot be carried out by itself. ``conflicts`` holds every reason."""

    code = "merge_conflicts"
    retryable = False
    default_remedy = (
        "Nothing was changed. Decide the entities one by one (--resolve FILE), or choose a side "
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


class PurgeRefused(Conflict):
    code = "purge_refused"
    default_remedy = "Wait until what is named has ended, then purge again; nothing was removed."


class BranchInUse(Conflict):
    code = "branch_in_use"
    retryable = False
    default_remedy = "Delete what depends on it first."


class BranchUnmerged(Conflict):
    code = "branch_unmerged"
    retryable = False
    default_remedy = "Merge it first, or delete it with --force (Python: force=True)."


class BranchProtected(Conflict):
    code = "branch_protected"
    status = 403
    retryable = False
    default_remedy = "Work on another branch and merge it, or lift the protection."


class SchemasDiffer(Conflict):
    code = "schemas_differ"
    retryable = False
    default_remedy = "Bring both sides to the same schema first, then try again."


class ObjectChanged(Conflict):
    code = "object_changed"
    default_remedy = "Read the object again and decide on its current content."


class Contention(Conflict):
    code = "contention"
    default_remedy = "Many writers are active on this branch: wait a little and try again."


class OwnershipLost(Conflict):
    """This process was paused for so long that another one resolved its write."""

    code = "ownership_lost"
    default_remedy = (
        "Another process already decided this write: look its commit id up before repeating it."
    )


class StorageFailure(OmnigraphError):
    code = "storage_failure"
    status = 500
    retryable = True
    default_remedy = "Check that the storage is reachable and healthy, then try again."


class PermissionDenied(StorageFailure):
    code = "permission_denied"
    retryable = False
    default_remedy = "Give this user or key read and write access to the graph's location."


class StorageFull(StorageFailure):
    code = "storage_full"
    retryable = False
    default_remedy = "Free some space (nothing was half written) and try again."


class OutputFailed(StorageFailure):
    code = "output_failed"
    default_remedy = (
        "Make room where the output goes, or send it elsewhere; the command itself ran."
    )


class OutcomeUnknown(StorageFailure):
    """A durable step was sent and never answered, and looking it up failed too."""

    code = "outcome_unknown"
    retryable = False
    default_remedy = "Do not repeat the write blindly: look the commit id up first."


class ExternalBlobUnavailable(StorageFailure):
    code = "external_blob_unavailable"
    status = 424
    default_remedy = "Check that the referenced bytes exist and can be read from here."


class CorruptData(StorageFailure):
    code = "corrupt_data"
    retryable = False
    default_remedy = "Restore the named file from a backup; nothing was changed."


class RecoveryRequired(OmnigraphError):
    code = "recovery_required"
    status = 503
    retryable = True
    default_remedy = "Run `omnigraph recover` on the graph."


class Drift(OmnigraphError):
    """A table's newest version is not the published one."""

    code = "drift"
    status = 503
    retryable = True
    default_remedy = "Run `omnigraph recover` on the graph."


class ChangesRefused(OmnigraphError):
    """A commit without a parent, or one that changed the shape of a type that has entities."""

    code = "change_diff_refusal"
    status = 409
    default_remedy = "Capture a new baseline and go on from its cursor."

    def __init__(self, reason: str, commit_id: str, type_name: str | None = None) -> None:
        about = "" if type_name is None else f" of {type_name}"
        texts = {
            "parentless_commit": "it is the first commit of the graph",
            "schema_boundary": f"it changes the schema{about}",
        }
        super().__init__(
            f"commit {commit_id} has no changes to show: {texts[reason]}",
            details={"reason": reason, "graph_commit_id": commit_id}
            | ({} if type_name is None else {"type_name": type_name}),
        )
        self.reason = reason


class ChangeFeedGap(OmnigraphError):
    """What a commit changed can no longer be read."""

    code = "change_feed_gap"
    status = 410
    default_remedy = "Capture a new baseline and go on from its cursor."

    def __init__(self, commit_id: str, cursor: str | None = None) -> None:
        super().__init__(
            f"the changes of commit {commit_id} were cleaned up and can no longer be read",
            details={"first_unreadable_commit_id": commit_id}
            | ({} if cursor is None else {"cursor": cursor}),
        )


class FormatUnsupported(OmnigraphError):
    code = "format_unsupported"
    status = 400
    default_remedy = "Use a version of Omnigraph that supports this graph's format."


class GraphMoved(OmnigraphError):
    """A graph directory was moved or copied, and this handle may not change its branches."""

    code = "graph_moved"
    status = 409
    default_remedy = "Run `omnigraph recover` on the graph, or open it for writing."


class ResourceLimit(OmnigraphError):
    code = "resource_limit"
    status = 413
    default_remedy = "Make the request smaller or raise the limit."

    def __init__(
        self, resource: str, limit: int, actual: int, *, remedy: str | None = None
    ) -> None:
        super().__init__(
            f"{resource}: {actual} is more than the limit of {limit}",
            remedy=remedy,
            details={"resource": resource, "limit": limit, "actual": actual},
        )


class QueryTimeout(OmnigraphError):
    code = "query_timeout"
    status = 408
    default_remedy = "Make the query more specific, or allow it more time."

    def __init__(self, limit_ms: int, passed_ms: int) -> None:
        super().__init__(
            f"the query ran for {passed_ms} ms, and {limit_ms} ms were allowed",
            details={"limit_ms": limit_ms, "passed_ms": passed_ms},
        )


class QueryCancelled(OmnigraphError):
    code = "query_cancelled"
    status = 499
    default_remedy = "Run the query again if its answer is wanted after all."


class EmbeddingFailure(OmnigraphError):
    """The provider of embeddings is missing, wrong, or did not answer."""

    code = "embedding_failure"
    status = 502
    default_remedy = "Check the embedding provider's settings, or pass a vector instead of a text."


class SparkFailure(OmnigraphError):
    """A job on Spark failed for a reason that is not the data's. Nothing of it is visible."""

    code = "spark_failure"
    default_remedy = "Look at the reason, and try again; nothing was written."


class SparkUnavailable(SparkFailure):
    code = "spark_unavailable"
    status = 503
    default_remedy = "Install the Spark extra and Java 17+, or load with `--engine local`."


class SparkStalled(SparkFailure):
    code = "spark_stalled"
    status = 503
    retryable = True
    default_remedy = "Check that the cluster has live workers with free cores, then try again."
