"""Blobs: managed bytes, allowed references, ranges, entity tags, lossless round trips."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BlobRangeInvalid,
    EntityNotFound,
    ExternalBlobDenied,
    ExternalBlobUnavailable,
    InvalidInput,
)
from omnigraph.storage.objects.confined_files import OutsideBase, read_below

SCHEMA = "node Doc { k: String @key  n: I32?  body: Blob? }"
SIZES = [0, 1, 100, 70_000, 3 << 20]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA)


def content(size: int) -> bytes:
    return bytes(i * 7 % 251 for i in range(min(size, 251))) * (size // 251 + 1)


@pytest.fixture
def filled(graph: Graph) -> Graph:
    with graph.write() as w:
        for size in SIZES:
            w.insert("Doc", {"k": str(size), "body": content(size)[:size]})
        w.insert("Doc", {"k": "none"})
    return graph


@pytest.mark.parametrize("size", SIZES)
def test_bytes_of_every_size_come_back(filled: Graph, size: int) -> None:
    blob = filled.blob("node", "Doc", str(size), "body")
    assert (blob.kind, blob.size, blob.uri) == ("managed", size, None)
    assert blob.read() == content(size)[:size]
    assert b"".join(blob.chunks()) == content(size)[:size]


@pytest.mark.parametrize(("offset", "length"), [(0, 1), (10, 5), (99, 100), (99, 1), (50, None)])
def test_ranges(filled: Graph, offset: int, length: int | None) -> None:
    blob = filled.blob("node", "Doc", "100", "body")
    end = None if length is None else offset + length
    assert blob.read(offset, length) == content(100)[:100][offset:end]


def test_ranges_outside_are_refused(filled: Graph) -> None:
    blob = filled.blob("node", "Doc", "100", "body")
    for offset, length in ((100, 1), (101, None), (-1, 2)):
        with pytest.raises(BlobRangeInvalid):
            blob.read(offset, length)


def test_the_tag_changes_with_the_entity_and_only_then(filled: Graph) -> None:
    def tag(k: str) -> str | None:
        return filled.blob("node", "Doc", k, "body").etag

    before, others = tag("100"), tag("1")
    assert before is not None
    assert len(before) == 34
    assert before.strip('"').isalnum()
    assert len({tag(str(size)) for size in SIZES}) == len(SIZES)
    filled.mutate('query q() { update Doc set { n: 1 } where k = "1" }')
    assert tag("100") == before
    assert tag("1") != others


def test_M_24_an_update_carries_every_blob_over(filled: Graph) -> None:
    filled.mutate('query q() { update Doc set { n: 7 } where k != "none" }')
    with filled.write() as w:
        w.update("Doc", "100", {"n": 8})
    for size in SIZES:
        assert filled.blob("node", "Doc", str(size), "body").read() == content(size)[:size]


def test_what_is_not_a_blob_is_said_so(filled: Graph) -> None:
    with pytest.raises(EntityNotFound, match="has no body"):
        filled.blob("node", "Doc", "none", "body")
    with pytest.raises(EntityNotFound):
        filled.blob("node", "Doc", "o'x", "body")
    for selector in (("node", "Doc", "1", "n"), ("thing", "Doc", "1", "body")):
        with pytest.raises(InvalidInput):
            filled.blob(*selector)


def test_an_old_commit_keeps_its_blob(filled: Graph) -> None:
    head = filled.snapshot().commit_id
    filled.mutate('query q() { update Doc set { body: "base64:AA==" } where k = "100" }')
    assert filled.blob("node", "Doc", "100", "body").read() == b"\x00"
    assert filled.blob("node", "Doc", "100", "body", at=head).read() == content(100)[:100]


class TestReferences:
    @pytest.fixture
    def outside(self, tmp_path: Path) -> Path:
        folder = tmp_path / "outside"
        folder.mkdir()
        (folder / "a.bin").write_bytes(b"from outside")
        return folder

    @pytest.fixture
    def allowing(self, graph: Graph, outside: Path) -> Graph:
        return omnigraph.open(graph.uri, blob_bases=[outside.as_uri()])

    def test_M_15_they_are_denied_unless_allowed(self, graph: Graph, outside: Path) -> None:
        uri = (outside / "a.bin").as_uri()
        insert = 'query q($b: Blob) { insert Doc { k: "a", body: $b } }'
        with pytest.raises(ExternalBlobDenied):
            graph.mutate(insert, params={"b": uri})
        with pytest.raises(ExternalBlobDenied):
            graph.load([{"type": "Doc", "data": {"k": "a", "body": uri}}], mode="overwrite")
        with pytest.raises(ExternalBlobDenied), graph.write() as w:
            w.insert("Doc", {"k": "a", "body": uri})
        assert b"".join(graph.export()) == b""

    def test_an_allowed_base_is_not_its_neighbour(self, allowing: Graph, outside: Path) -> None:
        for uri in (
            outside.as_uri() + "-more/a.bin",
            outside.as_uri() + "/../secret",
            outside.as_uri() + "/%2e%2e/secret",
            outside.as_uri(),
        ):
            with pytest.raises(ExternalBlobDenied), allowing.write() as w:
                w.insert("Doc", {"k": "a", "body": uri})

    @pytest.mark.parametrize("mode", ["append", "overwrite"])
    def test_links_below_an_allowed_base_lead_nowhere_else(
        self, allowing: Graph, outside: Path, tmp_path: Path, mode: str
    ) -> None:
        """Neither a link to a file nor one to a directory; ``overwrite`` keeps the reference."""
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "key").write_bytes(b"secret")
        (outside / "file").symlink_to(tmp_path / "secrets" / "key")
        (outside / "relative").symlink_to("../secrets/key")
        (outside / "folder").symlink_to(tmp_path / "secrets")
        (outside / "chain").symlink_to(outside / "file")
        for name in ("file", "relative", "folder/key", "chain"):
            line = {"type": "Doc", "data": {"k": "a", "body": f"{outside.as_uri()}/{name}"}}
            with pytest.raises(ExternalBlobDenied):
                allowing.load([line], mode=mode)  # type: ignore[arg-type]
        assert b"".join(allowing.export()) == b""

    def test_links_that_stay_below_an_allowed_base_and_to_the_base_are_followed(
        self, graph: Graph, outside: Path, tmp_path: Path
    ) -> None:
        (outside / "inner").mkdir()
        (outside / "inner" / "link").symlink_to(outside / "a.bin")
        (tmp_path / "base").symlink_to(outside)
        allowing = omnigraph.open(graph.uri, blob_bases=[(tmp_path / "base").as_uri()])
        with allowing.write() as w:
            w.insert("Doc", {"k": "a", "body": (tmp_path / "base" / "inner" / "link").as_uri()})
        assert allowing.blob("node", "Doc", "a", "body").read() == b"from outside"

    def test_a_link_that_appears_after_the_check_is_not_followed(
        self, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "a.bin").write_bytes(b"secret")
        (outside / "inner").mkdir()
        (outside / "inner" / "a.bin").write_bytes(b"fine")
        real = os.open

        def swapping(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if path == "inner":
                shutil.rmtree(outside / "inner")
                (outside / "inner").symlink_to(tmp_path / "secrets")
            return real(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", swapping)
        with pytest.raises(OutsideBase):
            read_below(str(outside), str(outside / "inner" / "a.bin"))

    @pytest.mark.parametrize("kind", ["pipe", "directory", "missing"])
    def test_what_is_no_file_is_unavailable(
        self, allowing: Graph, outside: Path, kind: str
    ) -> None:
        if kind == "pipe":
            os.mkfifo(outside / "it")
        elif kind == "directory":
            (outside / "it").mkdir()
        with pytest.raises(ExternalBlobUnavailable), allowing.write() as w:
            w.insert("Doc", {"k": "a", "body": f"{outside.as_uri()}/it"})

    def test_M_15_L_8_mutations_append_and_merge_copy_the_bytes(
        self, allowing: Graph, outside: Path
    ) -> None:
        uri = (outside / "a.bin").as_uri()
        allowing.mutate('query q($b: Blob) { insert Doc { k: "a", body: $b } }', params={"b": uri})
        for k, mode in (("b", "append"), ("c", "merge")):
            allowing.load([{"type": "Doc", "data": {"k": k, "body": uri}}], mode=mode)  # type: ignore[arg-type]
        (outside / "a.bin").unlink()
        for k in "abc":
            assert allowing.blob("node", "Doc", k, "body").read() == b"from outside"

    def test_L_8_overwrite_keeps_the_reference_and_updates_carry_it(
        self, allowing: Graph, outside: Path
    ) -> None:
        uri = (outside / "a.bin").as_uri()
        allowing.load([{"type": "Doc", "data": {"k": "a", "body": uri}}], mode="overwrite")
        allowing.mutate('query q() { update Doc set { n: 1 } where k = "a" }')
        blob = allowing.blob("node", "Doc", "a", "body")
        assert (blob.kind, blob.uri, blob.size, blob.etag) == ("external", uri, None, None)
        assert f'"body":"{uri}"'.encode() in b"".join(allowing.export())
        with pytest.raises(InvalidInput, match="reference"):
            blob.read()

    def test_missing_bytes_are_unavailable_not_empty(self, allowing: Graph, outside: Path) -> None:
        with pytest.raises(ExternalBlobUnavailable) as caught, allowing.write() as w:
            w.insert("Doc", {"k": "a", "body": outside.as_uri() + "/none.bin"})
        assert caught.value.status == 424
