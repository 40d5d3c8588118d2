"""The OpenAPI document, made from the declared operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from omnigraph.errors.base import WIRE_CODES
from omnigraph.server.http.operation import GRAPH_PREFIX, JSON, Operation, WireParameter
from omnigraph.server.http.shapes import ErrorOutput

REFERENCE: Final = "#/components/schemas/{name}"
API_VERSION: Final = "0.10.0"
_DESCRIPTIONS: Final = {499: "The client went away"}


def document(operations: Iterable[Operation], *, secured: bool) -> dict[str, Any]:
    """The document; ``secured`` says whether requests need a token."""
    known = list(operations)
    schemas, components = _schemas(known)
    paths: dict[str, dict[str, Any]] = {}
    for item in known:
        path = item.path.replace(":path}", "}")
        paths.setdefault(path, {})[item.method.lower()] = _operation(item, schemas, secured)
    body: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Omnigraph API",
            "version": API_VERSION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if secured:
        body["components"]["securitySchemes"] = {
            "bearer_token": {"type": "http", "scheme": "bearer"}
        }
    return body


def _schemas(operations: list[Operation]) -> tuple[dict[Any, Any], dict[str, Any]]:
    shapes: list[Any] = [ErrorOutput]
    for item in operations:
        if item.body is not None and item.body.shape is not None:
            shapes.append(item.body.shape)
        shapes += [one.shape for one in item.successes.values() if one.shape is not None]
    unique = list(dict.fromkeys(shapes))
    made, components = msgspec.json.schema_components(unique, ref_template=REFERENCE)
    return dict(zip(unique, made, strict=True)), dict(components)


def _operation(item: Operation, schemas: Mapping[Any, Any], secured: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "operationId": item.operation_id,
        "tags": [item.tag],
        "summary": item.summary,
        "parameters": [*_path_parameters(item), *(_parameter(one) for one in item.parameters)],
        "responses": _responses(item, schemas, secured),
    }
    if item.body is not None:
        schema = (
            {"type": "string", "format": "binary"}
            if item.body.shape is None
            else schemas[item.body.shape]
        )
        body["requestBody"] = {
            "required": item.body.required,
            "content": {media: {"schema": schema} for media in item.body.media},
        }
    if item.successor is not None:
        body["deprecated"] = True
    if secured and item.action is not None:
        body["security"] = [{"bearer_token": []}]
    return body


def _path_parameters(item: Operation) -> list[dict[str, Any]]:
    names = [part.split("}")[0].split(":")[0] for part in item.path.split("{")[1:]]
    found = []
    for name in names:
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if name == "graph_id" and item.path.startswith(GRAPH_PREFIX):
            schema |= {"pattern": "^[a-zA-Z0-9-]{1,64}$"}
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
    return found


def _parameter(item: WireParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": item.kind}
    if item.choices:
        schema["enum"] = list(item.choices)
    if item.low is not None:
        schema["minimum"] = item.low
    if item.repeated:
        schema = {"type": "array", "items": schema}
    body: dict[str, Any] = {
        "name": item.name,
        "in": item.place,
        "required": item.required,
        "description": item.meaning,
        "schema": schema,
    }
    if item.repeated:
        body |= {"style": "form", "explode": True}
    return body


def _responses(item: Operation, schemas: Mapping[Any, Any], secured: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in item.statuses:
        success = item.successes.get(status)
        if success is None:
            if status in (401,) and not secured:
                continue
            found[str(status)] = _refusal(status, item.method, schemas)
            continue
        response: dict[str, Any] = {"description": success.meaning}
        if success.shape is not None:
            response["content"] = {
                media: {"schema": schemas[success.shape] if media == JSON else {}}
                for media in success.media
            }
        elif success.media != (JSON,):
            response["content"] = {media: {} for media in success.media}
        if success.headers:
            response["headers"] = {
                name: {"description": meaning, "schema": {"type": "string"}}
                for name, meaning in success.headers.items()
            }
        found[str(status)] = response
    return found


def _refusal(status: int, method: str, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    description = _DESCRIPTIONS.get(status) or HTTPStatus(status).phrase
    if status in WIRE_CODES:
        description += f" (`{WIRE_CODES[status]}`)"
    if method == "HEAD":
        return {"description": description}
    return {"description": description, "content": {JSON: {"schema": schemas[ErrorOutput]}}}
