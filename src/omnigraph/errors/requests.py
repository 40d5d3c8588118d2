"""A server refuses a request before any engine sees it."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class RequestRefused(OmnigraphError):
    """The root of refusals by a server. ``retry_after_s`` becomes the header ``Retry-After``."""

    code = "request_refused"
    status = 400
    default_remedy = "Correct the request and send it again."
    retry_after_s: int | None = None


class Unauthorized(RequestRefused):
    code = "unauthorized"
    status = 401
    default_remedy = "Send `Authorization: Bearer TOKEN` with a token of this server."


class Forbidden(RequestRefused):
    code = "forbidden"
    status = 403
    default_remedy = "Ask whoever keeps the policy for a rule that allows the action."


class RouteNotFound(RequestRefused):
    code = "route_not_found"
    status = 404
    default_remedy = "Use a path of `/openapi.json`."


class GraphNotServed(RequestRefused):
    code = "graph_not_served"
    status = 404
    default_remedy = "List the graphs of the server with `GET /graphs`."


class StoredQueryNotFound(RequestRefused):
    code = "stored_query_not_found"
    status = 404
    default_remedy = "List the stored queries with `GET /graphs/{graph_id}/queries`."


class MethodNotAllowed(RequestRefused):
    code = "method_not_allowed"
    status = 405
    default_remedy = "Use a method of the header `Allow`."


class NotAcceptable(RequestRefused):
    code = "not_acceptable"
    status = 406
    default_remedy = "Accept `application/json`."


class BodyTimeout(RequestRefused):
    code = "body_timeout"
    status = 408
    retryable = True
    default_remedy = "Send the body of the request faster."


class BlobPreconditionFailed(RequestRefused):
    code = "blob_precondition_failed"
    status = 412
    default_remedy = "Read the blob again and repeat the request with its current ETag."

    @property
    def wire_code(self) -> str:
        return "conflict"


class UnsupportedMediaType(RequestRefused):
    code = "unsupported_media_type"
    status = 415
    default_remedy = "Send a content type, and a content encoding, that the route accepts."


class TooManyRequests(RequestRefused):
    code = "too_many_requests"
    status = 429
    retryable = True
    retry_after_s = 60
    default_remedy = "Wait as `Retry-After` says, and have fewer writes in flight."


class ApiContractMismatch(RequestRefused):
    code = "api_contract_mismatch"
    status = 400
    default_remedy = "Send `Omnigraph-Http-Api` once, with a version from 0.10 to 0.13, or not."

    @property
    def wire_code(self) -> str:
        return self.code


class GraphUnavailable(RequestRefused):
    """A graph that the server knows and cannot serve now."""

    code = "graph_unavailable"
    status = 503
    retryable = True
    retry_after_s = 5
    default_remedy = "Try again later; `GET /graphs` shows the state of the graph."

    @property
    def wire_code(self) -> str:
        return self.code


class ServiceUnavailable(RequestRefused):
    """The server is overloaded or stopping."""

    code = "service_unavailable"
    status = 503
    retryable = True
    retry_after_s = 1
    default_remedy = "Try again later."

    @property
    def wire_code(self) -> str:
        return self.code
