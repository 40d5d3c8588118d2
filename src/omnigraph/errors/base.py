"""The root of all errors, and the one form in which every surface shows them.

``to_json`` is the body of an HTTP error and of ``--json``. Its ``code`` is one of a few words that
never grow (a client that knows none of our own codes can still branch on them); ``reason`` is the
class's own stable code. Structured facts stand in a member of their own, which a class names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

WIRE_CODES: Final[Mapping[int, str]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "bad_request",
    409: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    429: "too_many_requests",
    500: "internal",
}
"""The word of a status. Any other status has none: clients branch on its structured member."""


class OmnigraphError(Exception):
    """The root of all errors. Never raised itself."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    default_remedy: ClassVar[str] = "This is a defect in Omnigraph: please report it."
    wire_member: ClassVar[str | None] = None
    """The member of the body with the structured facts of this class."""
    wire_names: ClassVar[tuple[str, ...]] = ()
    """Which of the details it holds. Details that are null are left out, except these."""
    wire_nulls: ClassVar[frozenset[str]] = frozenset()

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

    @property
    def wire_code(self) -> str | None:
        """The word for this error in the closed vocabulary of the wire."""
        return WIRE_CODES.get(self.status)

    def facts(self) -> dict[str, Any]:
        """The structured facts of the error, by name."""
        if self.wire_member is None:
            return {}
        found = {
            name: self.details[name]
            for name in self.wire_names
            if name in self.details and (self.details[name] is not None or name in self.wire_nulls)
        }
        return {self.wire_member: found}

    def to_json(self) -> dict[str, Any]:
        """The error as data: the body of an HTTP response, and what ``--json`` prints."""
        body: dict[str, Any] = {"error": self.message}
        if self.wire_code is not None:
            body["code"] = self.wire_code
        facts = self.facts()
        body |= facts
        body |= {"reason": self.code, "remedy": self.remedy, "retryable": self.retryable}
        rest = {name: value for name, value in self.details.items() if name not in facts}
        if rest:
            body["details"] = rest
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
