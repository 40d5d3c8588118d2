"""The store refused or failed, or the stored data cannot be used as it is."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class StorageFailure(OmnigraphError):
    code = "storage_failure"
    status = 500
    retryable = True
    default_remedy = "Check that the storage is reachable and healthy, then try again."


class PermissionDenied(StorageFailure):
    code = "permission_denied"
    retryable = False
    default_remedy = "Grant this user or key read and write access to the location of the graph."


class StorageFull(StorageFailure):
    code = "storage_full"
    retryable = False
    default_remedy = "Free some space and try again. Nothing was partially written."


class OutputFailed(StorageFailure):
    code = "output_failed"
    default_remedy = (
        "Free space at the destination of the output, or redirect it; the command itself has run."
    )


class OutcomeUnknown(StorageFailure):
    """A request without a response whose outcome could not be determined."""

    code = "outcome_unknown"
    retryable = False
    default_remedy = "Look up the commit id before repeating the write: it may have taken effect."


class ExternalBlobUnavailable(StorageFailure):
    code = "external_blob_unavailable"
    status = 424
    wire_member = "external_blob_source"
    wire_names = ("uri", "reason")
    default_remedy = "Check that the referenced bytes exist and can be read from here."


class CorruptData(StorageFailure):
    code = "corrupt_data"
    retryable = False
    default_remedy = "Restore the named file from a backup. Nothing was changed."


class RecoveryRequired(OmnigraphError):
    code = "recovery_required"
    status = 503
    wire_member = "recovery_required"
    wire_names = ("operation_id",)
    retryable = True
    default_remedy = "Run `omnigraph recover` on the graph."


class Drift(OmnigraphError):
    """A table has versions that were never published."""

    code = "drift"
    status = 503
    retryable = True
    default_remedy = "Run `omnigraph recover` on the graph."


class FormatUnsupported(OmnigraphError):
    code = "format_unsupported"
    status = 400
    default_remedy = "Use a version of Omnigraph that supports this graph's format."


class GraphMoved(OmnigraphError):
    """A graph was moved or copied, and a read-only handle may not update its branches' location."""

    code = "graph_moved"
    status = 409
    default_remedy = "Run `omnigraph recover` on the graph, or open it for writing."
