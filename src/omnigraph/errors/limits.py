"""A query or request exceeded one of its limits."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class ResourceLimit(OmnigraphError):
    code = "resource_limit"
    wire_member = "resource_limit"
    wire_names = ("resource", "limit", "actual")
    status = 413
    default_remedy = "Reduce the request or raise the limit."

    def __init__(
        self, resource: str, limit: int, actual: int, *, remedy: str | None = None
    ) -> None:
        super().__init__(
            f"{resource}: {actual} exceeds the limit of {limit}",
            remedy=remedy,
            details={"resource": resource, "limit": limit, "actual": actual},
        )


class QueryTimeout(OmnigraphError):
    code = "query_timeout"
    status = 408
    default_remedy = "Make the query more selective, or raise its time limit."

    def __init__(self, limit_ms: int, passed_ms: int) -> None:
        super().__init__(
            f"the query ran for {passed_ms} ms; its limit is {limit_ms} ms",
            details={"limit_ms": limit_ms, "passed_ms": passed_ms},
        )


class QueryCancelled(OmnigraphError):
    code = "query_cancelled"
    status = 499
    default_remedy = "Run the query again if its result is still needed."
