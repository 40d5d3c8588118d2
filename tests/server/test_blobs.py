"""Blobs over HTTP: identity, conditions, ranges, references to elsewhere, writing."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from tests.support.http_contract import check_response
from tests.support.http_server import RunningServer, running

DATA = bytes(range(256)) * 40
SCHEMA = "node Doc { name: String @key  data: Blob?  must: Blob?  title: String? }"
PATH = "/graphs/docs/blob"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("blobs")
    for name in ("http.bin", "file.bin"):
        (folder / name).write_bytes(b"elsewhere")
    graph = omnigraph.init(folder / "docs", SCHEMA)
    encoded = "base64:" + base64.b64encode(DATA).decode()
    rows = [
        {"type": "Doc", "data": {"name": "a", "data": encoded}},
        {"type": "Doc", "data": {"name": "empty", "data": "base64:"}},
        {"type": "Doc", "data": {"name": "null"}},
    ]
    graph.load(rows, mode="append")
    with running(folder, ["docs"]) as server:
        hooks = {"response": [check_response]}
        with server.client(event_hooks=hooks, follow_redirects=False) as client:
            yield client


def of(id: str, **more: str) -> dict[str, str]:
    return {"entity": "node", "type": "Doc", "id": id, "property": "data", **more}


def get(client: httpx.Client, id: str = "a", **headers: str) -> httpx.Response:
    return client.get(
        PATH, params=of(id), headers={n.replace("_", "-"): v for n, v in headers.items()}
    )


def test_the_whole_value_and_its_identity(docs: httpx.Client) -> None:
    found = get(docs)
    assert (found.status_code, found.content) == (200, DATA)
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["accept-ranges"] == "bytes"
    assert found.headers["content-length"] == str(len(DATA))
    tag = found.headers["etag"]
    assert (tag[0], tag[-1], len(tag)) == ('"', '"', 34)
    assert found.headers["omnigraph-snapshot-id"]
    head = docs.head(PATH, params=of("a"), headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(DATA))
    assert head.headers["etag"] == tag


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=10-", 10, len(DATA)),
        ("bytes=-5", len(DATA) - 5, len(DATA)),
        ("bytes=5-99999999", 5, len(DATA)),
        ("bytes=-99999999", 0, len(DATA)),
    ],
)
def test_one_range(docs: httpx.Client, asked: str, start: int, end: int) -> None:
    found = get(docs, range=asked)
    assert (found.status_code, found.content) == (206, DATA[start:end])
    assert found.headers["content-range"] == f"bytes {start}-{end - 1}/{len(DATA)}"


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,3-4", "items=0-1", "bytes=b-1", "bytes=9-2", "bytes=", "bytes=-"]
)
def test_a_range_that_is_no_range_is_ignored(docs: httpx.Client, asked: str) -> None:
    assert get(docs, range=asked).status_code == 200


@pytest.mark.parametrize("asked", ["bytes=10240-", "bytes=99999-100000", "bytes=-0"])
def test_a_range_outside_the_value(docs: httpx.Client, asked: str) -> None:
    found = get(docs, range=asked)
    assert found.status_code == 416
    assert found.headers["content-range"] == f"bytes */{len(DATA)}"
    assert found.json()["blob_range"]["length"] == len(DATA)


def test_ranges_of_an_empty_value(docs: httpx.Client) -> None:
    assert get(docs, "empty").content == b""
    assert get(docs, "empty", range="bytes=0-").status_code == 416
    assert get(docs, "empty", range="bytes=-1").status_code == 416


def test_conditions(docs: httpx.Client) -> None:
    tag = get(docs).headers["etag"]
    assert get(docs, if_match=tag).status_code == 200
    assert get(docs, if_match="*").status_code == 200
    assert get(docs, if_match=f'"other", {tag}').status_code == 200
    for wrong in ('"other"', f"W/{tag}", "garbage", tag[:-1]):
        lost = get(docs, if_match=wrong)
        assert (lost.status_code, lost.json()["code"]) == (412, "conflict")
        assert lost.headers["etag"] == tag
    for same in (tag, f"W/{tag}", "*", f'"other", {tag}'):
        found = get(docs, if_none_match=same)
        assert (found.status_code, found.content) == (304, b"")
        assert found.headers["etag"] == tag
        assert docs.head(PATH, params=of("a"), headers={"If-None-Match": same}).status_code == 304
    assert get(docs, if_none_match='"other"').status_code == 200
    assert get(docs, if_match='"other"', if_none_match=tag).status_code == 412


def test_a_range_of_the_value_that_the_client_knows(docs: httpx.Client) -> None:
    tag = get(docs).headers["etag"]
    assert get(docs, range="bytes=0-1", if_range=tag).status_code == 206
    for other in ('"other"', f"W/{tag}", "Wed, 18 Nov 2026 20:00:00 GMT"):
        assert get(docs, range="bytes=0-1", if_range=other).status_code == 200


@pytest.mark.parametrize(
    ("params", "status"),
    [
        (of("nobody"), 404),
        (of("null"), 404),
        ({**of("a"), "property": "title"}, 400),
        ({**of("a"), "property": "no"}, 400),
        ({**of("a"), "type": "No"}, 404),
        ({**of("a"), "entity": "table"}, 400),
        ({"entity": "node", "type": "Doc", "id": "a"}, 400),
        (of("a", branch="main", snapshot="x"), 400),
        (of("a", branch="no"), 404),
    ],
)
def test_selectors_that_select_nothing(
    docs: httpx.Client, params: dict[str, str], status: int
) -> None:
    found = docs.get(PATH, params=params)
    assert found.status_code == status
    assert docs.head(PATH, params=params).status_code == status


def test_putting_and_clearing(docs: httpx.Client) -> None:
    where = of("null")
    headers = {"Content-Type": "application/octet-stream"}
    none = docs.put(PATH, params=where, content=b"x", headers={**headers, "If-Match": '"a"'})
    assert none.status_code == 412
    keyed = {**headers, "Idempotency-Key": "put"}
    made = docs.put(PATH, params=where, content=b"one", headers=keyed).json()
    assert (made["kind"], made["size"], made["actor_id"]) == ("managed", 3, "ana")
    assert docs.get(PATH, params=where).content == b"one"
    assert (
        docs.put(PATH, params=where, content=b"one", headers=keyed).json()["commit"]
        == (made["commit"])
    )
    matching = {**headers, "If-Match": made["etag"]}
    changed = docs.put(PATH, params=where, content=b"two", headers=matching).json()
    assert changed["etag"] != made["etag"]
    lost = docs.put(PATH, params=where, content=b"three", headers=matching)
    assert lost.status_code == 412
    assert docs.delete(PATH, params=where).json()["kind"] is None
    assert docs.get(PATH, params=where).status_code == 404
    assert docs.put(PATH, params=where, content=b"x").status_code == 415
    at = {**where, "snapshot": made["commit"]["graph_commit_id"]}
    assert docs.get(PATH, params=at).content == b"one"
    assert docs.put(PATH, params=at, content=b"x", headers=headers).status_code == 400


def test_references_to_elsewhere_are_redirects_where_clients_can_follow(tmp_path: Path) -> None:
    """External values are stored by an embedded writer that allows their base."""
    (tmp_path / "bytes").write_bytes(b"elsewhere")
    base = f"file://{tmp_path}/"
    omnigraph.init(tmp_path / "docs", SCHEMA)
    graph = omnigraph.open(tmp_path / "docs", blob_bases=[base])
    row = {"type": "Doc", "data": {"name": "a", "data": f"{base}bytes"}}
    graph.load([row], mode="overwrite")
    with running(tmp_path, ["docs"]) as server, server.client() as client:
        check_redirect(server, client)


def check_redirect(server: RunningServer, client: httpx.Client) -> None:
    found = client.get(PATH, params=of("a"))
    assert found.status_code == 424
    assert found.json()["external_blob_source"]["uri"] == "file:"
    assert "bytes" not in found.json()["external_blob_source"]["uri"]
