"""Blobs: their bytes, whole or in ranges, and writing them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from omnigraph import Blob
from omnigraph.errors import (
    BlobPreconditionFailed,
    BlobRangeInvalid,
    Contention,
    EntityNotFound,
    ExternalBlobUnavailable,
    InvalidInput,
    PreconditionFailed,
)
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import Answer, AnyAnswer, Headers, Stream, json_answer
from omnigraph.server.http.conditions import (
    UnsatisfiableRange,
    is_unchanged,
    matches_strongly,
    wanted_range,
)
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import (
    BRANCH,
    BYTES,
    IDEMPOTENCY,
    SNAPSHOT,
    Body,
    Operation,
    Success,
    WireParameter,
)
from omnigraph.server.http.shapes import BlobReceipt

PUT_BYTES_MAX: Final = 32 << 20
"""A blob that is put is held in memory; larger ones belong into a load."""
PUT_ATTEMPTS: Final = 5
"""Other writes may move the head between the check of ``If-Match`` and the write."""
REDIRECTED: Final = frozenset({"http", "https", "s3", "gs", "az"})
"""Schemes that a client can follow; another one would say where files of this machine are."""


def _selector(call: Exchange) -> tuple[str, str, str, str]:
    entity = call.needed("entity")
    return entity, call.needed("type"), call.needed("id"), call.needed("property")


async def _found(call: Exchange) -> Blob:
    branch, at = call.state()
    await call.allow_state(GraphAction.READ, branch, at)
    work = partial(call.graph.blob, *_selector(call), branch=branch, at=at)
    return await call.read(work)


async def get(call: Exchange) -> AnyAnswer:
    blob = await _found(call)
    early = _decided(call, blob)
    if early is not None:
        return early
    assert blob.etag is not None
    assert blob.size is not None
    try:
        part = wanted_range(call.headers, blob.etag, blob.size)
    except UnsatisfiableRange as wrong:
        refused = BlobRangeInvalid(wrong.start, wrong.end, blob.size)
        call.refusal_headers = (("content-range", f"bytes */{blob.size}"), *_identity(blob))
        raise refused from None
    headers = _identity(blob)
    if part is None:
        return await _sent(call, blob, 0, blob.size, 200, headers)
    shown = ("content-range", f"bytes {part.start}-{part.end - 1}/{blob.size}")
    return await _sent(call, blob, part.start, part.end, 206, (*headers, shown))


async def head(call: Exchange) -> AnyAnswer:
    blob = await _found(call)
    early = _decided(call, blob)
    if early is not None:
        return early
    return Answer(media=BYTES, headers=_identity(blob), length=blob.size)


async def _sent(
    call: Exchange, blob: Blob, start: int, end: int, status: int, headers: Headers
) -> AnyAnswer:
    if start == end:
        return Answer(b"", status, BYTES, headers)

    def chunks() -> Iterator[bytes]:
        return blob.chunks(start, end - start)

    made = await call.stream(chunks, BYTES, headers)
    return Stream(made.chunks, BYTES, status, headers, end - start)


def _decided(call: Exchange, blob: Blob) -> Answer | None:
    """An answer that needs no bytes: a redirect, a failed condition, an unchanged value."""
    if blob.uri is not None:
        if urlsplit(blob.uri).scheme.lower() not in REDIRECTED:
            raise ExternalBlobUnavailable(
                "the blob refers to bytes that clients cannot reach",
                remedy="Store the bytes themselves, or refer to them by https.",
                details={"uri": f"{urlsplit(blob.uri).scheme}:", "reason": "not_reachable"},
            )
        headers = (
            ("location", blob.uri),
            ("cache-control", "no-store"),
            ("omnigraph-snapshot-id", blob.snapshot),
        )
        return Answer(b"", 302, None, headers)
    assert blob.etag is not None
    if not matches_strongly(call.headers, blob.etag):
        call.refusal_headers = _identity(blob)
        raise BlobPreconditionFailed(
            "the blob has another ETag than `If-Match` requires",
            details={"current_etag": blob.etag},
        )
    if is_unchanged(call.headers, blob.etag):
        # To a GET, uvicorn does not send a length without as many bytes; it is optional there.
        length = blob.size if call.operation.method == "HEAD" else None
        return Answer(b"", 304, None, _identity(blob), length=length)
    return None


def _identity(blob: Blob) -> Headers:
    assert blob.etag is not None
    return (
        ("accept-ranges", "bytes"),
        ("etag", blob.etag),
        ("omnigraph-snapshot-id", blob.snapshot),
    )


async def put(call: Exchange) -> AnyAnswer:
    call.require_media(BYTES)
    _refuse_snapshot(call)
    call.allow(GraphAction.CHANGE, branch=call.text("branch") or "main")
    data = await call.raw_body(PUT_BYTES_MAX)
    value = "base64:" + base64.b64encode(data).decode()
    return json_answer(await call.write(partial(_written, call, value), len(data)))


async def delete(call: Exchange) -> AnyAnswer:
    _refuse_snapshot(call)
    call.allow(GraphAction.CHANGE, branch=call.text("branch") or "main")
    return json_answer(await call.write(partial(_written, call, None), len(call.needed("id"))))


def _refuse_snapshot(call: Exchange) -> None:
    if "snapshot" in call.query:
        raise InvalidInput("a snapshot cannot be written to", remedy="Name a branch.")


def _written(call: Exchange, value: str | None) -> dict[str, Any]:
    """Set a blob, or clear it, if ``If-Match`` holds at the moment of the commit."""
    branch = call.text("branch") or "main"
    selector = _selector(call)
    conditional = "if-match" in call.headers
    for _ in range(PUT_ATTEMPTS):
        head = None
        if conditional:
            head = call.graph.snapshot(branch).commit_id
            _require_match(call, selector, branch)
        try:
            return _write_once(call, selector, branch, value, head)
        except PreconditionFailed:
            continue
    raise Contention("other writes moved the branch too often")


def _require_match(call: Exchange, selector: tuple[str, str, str, str], branch: str) -> None:
    try:
        etag = call.graph.blob(*selector, branch=branch).etag
    except EntityNotFound:
        call.graph.entity(f"{selector[0]}:{selector[1]}", selector[2], branch)
        etag = None
    if not matches_strongly(call.headers, etag):
        raise BlobPreconditionFailed(
            "the blob has another ETag than `If-Match` requires",
            details={} if etag is None else {"current_etag": etag},
        )


def _write_once(
    call: Exchange,
    selector: tuple[str, str, str, str],
    branch: str,
    value: str | None,
    head: str | None,
) -> dict[str, Any]:
    entity, type_name, id, property_name = selector
    graph = call.graph
    declared = graph.schema(branch).type(f"{entity}:{type_name}").properties.get(property_name)
    if declared is None or not declared.type.is_blob:
        raise InvalidInput(f"{type_name} has no Blob property {property_name!r}")
    writing = graph.write(
        branch, actor=call.actor, expected_head=head, idempotency_key=call.idempotency_key
    )
    with writing as batch:
        update = batch.update if entity == "node" else batch.update_edge
        update(type_name, id, {property_name: value})
    commit = batch.result
    body: dict[str, Any] = {
        "selector": {
            "entity": entity,
            "type": type_name,
            "id": id,
            "property": property_name,
        },
        "branch": branch,
        "kind": None,
        "size": None,
        "etag": None,
        "actor_id": call.actor,
        "commit": None if commit is None else commit.to_json(),
    }
    if value is not None:
        blob = graph.blob(*selector, branch=branch)
        body |= {"kind": blob.kind, "size": blob.size, "etag": blob.etag}
    return body


_SELECTOR: Final = (
    WireParameter("entity", "`node` or `edge`.", required=True, choices=("node", "edge")),
    WireParameter("type", "The type of the entity.", required=True),
    WireParameter("id", "Its id.", required=True),
    WireParameter("property", "The blob property.", required=True),
    BRANCH,
    SNAPSHOT,
)
_IF_MATCH: Final = WireParameter("If-Match", "Only if the value has this ETag.", "header")
_READ_HEADERS: Final = (
    _IF_MATCH,
    WireParameter("If-None-Match", "Only if the value has another ETag.", "header"),
)
_RANGE_HEADERS: Final = (
    WireParameter("Range", "One range of bytes.", "header"),
    WireParameter("If-Range", "The ETag that the range belongs to.", "header"),
)
_IDENTITY: Final = {
    "ETag": "Changes with every change of the entity.",
    "Omnigraph-Snapshot-Id": "The state that was read.",
}
_FOUND: Final = {
    200: Success("The bytes.", media=(BYTES,), headers=_IDENTITY),
    302: Success("The bytes are somewhere else.", headers={"Location": "Where."}),
    304: Success("The value is the one that the client has.", headers=_IDENTITY),
}
_PATH: Final = "/graphs/{graph_id}/blob"

OPERATIONS: Final = (
    Operation(
        "GET",
        _PATH,
        "cluster_getBlob",
        "blobs",
        "The bytes of a blob, or a range of them.",
        get,
        GraphAction.READ,
        {**_FOUND, 206: Success("A range of the bytes.", media=(BYTES,), headers=_IDENTITY)},
        (410, 412, 416, 424),
        (*_SELECTOR, *_READ_HEADERS, *_RANGE_HEADERS),
    ),
    Operation(
        "HEAD",
        _PATH,
        "cluster_headBlob",
        "blobs",
        "What is known about a blob.",
        head,
        GraphAction.READ,
        _FOUND,
        (410, 412, 424),
        (*_SELECTOR, *_READ_HEADERS),
    ),
    Operation(
        "PUT",
        _PATH,
        "putBlob",
        "blobs",
        "Set the bytes of a blob.",
        put,
        GraphAction.CHANGE,
        {200: Success("What is stored now, and the commit.", BlobReceipt)},
        (412,),
        (*_SELECTOR, _IF_MATCH, IDEMPOTENCY),
        Body(media=(BYTES,)),
        writes=True,
    ),
    Operation(
        "DELETE",
        _PATH,
        "deleteBlob",
        "blobs",
        "Clear a blob.",
        delete,
        GraphAction.CHANGE,
        {200: Success("The commit; null where there was nothing to clear.", BlobReceipt)},
        (412,),
        (*_SELECTOR, _IF_MATCH, IDEMPOTENCY),
        writes=True,
    ),
)
