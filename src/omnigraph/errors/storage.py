"""The store refused, failed or holds what cannot be used as it is."""

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


class FormatUnsupported(OmnigraphError):
    code = "format_unsupported"
    status = 400
    default_remedy = "Use a version of Omnigraph that supports this graph's format."


class GraphMoved(OmnigraphError):
    """A graph directory was moved or copied, and this handle may not change its branches."""

    code = "graph_moved"
    status = 409
    default_remedy = "Run `omnigraph recover` on the graph, or open it for writing."
