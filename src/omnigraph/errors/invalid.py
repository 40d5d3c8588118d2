"""The request itself is wrong; repeating it cannot help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors.base import OmnigraphError


class InvalidInput(OmnigraphError):
    code = "bad_request"
    status = 400
    default_remedy = "Correct the request and send it again."


class LanguageError(InvalidInput):
    code = "language_error"
    default_remedy = "Correct the text at the marked positions."


class ParameterError(LanguageError):
    """Values that do not match the parameters of a query. ``problems`` lists all of them."""

    code = "invalid_parameters"
    default_remedy = "Give every required parameter a value of its declared type."

    def __init__(self, problems: Sequence[Mapping[str, Any]], *, remedy: str | None = None) -> None:
        message = "; ".join(str(problem["message"]) for problem in problems)
        super().__init__(message, remedy=remedy, details={"parameters": list(problems)})
        self.problems = tuple(problems)


class InvalidValue(InvalidInput):
    code = "invalid_value"
    default_remedy = "Give a value of the declared type."


class CalculationFailed(InvalidInput):
    """An expression of a query has no value for some row: an overflow, a division by zero, a text
    that is no number."""

    code = "calculation_failed"
    default_remedy = "Exclude such values in a condition, or choose another value with `case`."


class InvalidData(InvalidInput):
    """Records that cannot be parsed or do not match the schema. Nothing was written.

    ``violations`` lists the first ones, each with its rule, type, id, property, file and line where
    known; ``total`` counts all of them.
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
    """Data that violates the schema's constraints."""

    code = "constraint_violation"
    default_remedy = "Change the data or the schema's constraints. Nothing was written."


class IdempotencyMismatch(InvalidInput):
    code = "idempotency_mismatch"
    status = 409
    default_remedy = "Use a new idempotency key for a different request."


class ExternalBlobDenied(InvalidInput):
    code = "external_blob_denied"
    default_remedy = "Store the bytes themselves (base64:…), or allow the prefix of this URI."


class BlobRangeInvalid(InvalidInput):
    code = "blob_range"
    wire_member = "blob_range"
    wire_names = ("start", "end", "length")
    status = 416
    default_remedy = "Request a range that starts inside the blob."

    def __init__(self, start: int, end: int | None, length: int) -> None:
        super().__init__(
            f"the range starts at {start}, but the blob has only {length} bytes",
            details={"start": start, "end": end, "length": length},
        )


class UnsupportedLocation(InvalidInput):
    code = "unsupported_location"
    default_remedy = "Use a local path, a file:// URI or an s3:// URI."


class CursorRejected(InvalidInput):
    code = "cursor_rejected"
    default_remedy = (
        "Repeat the request without the token: it is damaged or belongs to another request."
    )


class SchemaChangeRefused(InvalidInput):
    code = "schema_change_refused"
    default_remedy = "Nothing was changed. Run `omnigraph schema plan` to see every step."


class NotAvailable(InvalidInput):
    code = "not_available"
    status = 501
    default_remedy = "Use a newer version of Omnigraph."


class ReadOnly(InvalidInput):
    code = "read_only"
    default_remedy = "Open the graph without read_only=True to write to it."
