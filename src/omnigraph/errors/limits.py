"""A query or request reached one of its limits."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


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
