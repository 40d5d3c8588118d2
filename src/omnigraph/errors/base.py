"""The root of all errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class OmnigraphError(Exception):
    """The root of all errors. Never raised itself."""

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
        """The error as data, as ``--json`` prints it."""
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
    """Unpickle an error without calling its constructor."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    error.message, error.remedy, error.details = message, remedy, details
    return error
