"""Input in an object store: divided by byte ranges, read by range, listed by folder and glob."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.spark.outcomes import content, two_graphs
from tests.support.inline_tasks import bulk_graph
from tests.support.s3server import S3Server
from tests.support.stores import open_objects

from omnigraph.bulk.load.driver import Sizes
from omnigraph.errors import InvalidData, InvalidInput
from omnigraph.ingest import sources
from omnigraph.ingest.sources import find_files
from omnigraph.settings import Settings
from omnigraph.storage.locations import parse_location

pytestmark = pytest.mark.s3

PEOPLE = [json.dumps({"type": "Person", "data": {"name": f"n{n}"}}) for n in range(400)]


def test_a_large_object_is_read_by_many_tasks_each_its_own_bytes(
    bucket: str, s3: S3Server, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "READ_BYTES", (512, 2_048))
    lines = [*PEOPLE]
    objects = open_objects(parse_location(f"{bucket}/in"))
    objects.put("people.jsonl", "\n".join(lines).encode())
    local, other = two_graphs(empty, tmp_path, b"")
    other = bulk_graph(other, sizes=Sizes(part_bytes=1_000, buckets=3))
    s3.reset()
    assert other.load(f"{bucket}/in/people.jsonl", mode="append").nodes == {"Person": 400}
    size = len("\n".join(lines))
    reads = [request for request in s3.requests() if request.kind == "GET"]
    assert len(reads) < 4 * size / 512
    assert local.load(f"{bucket}/in/people.jsonl", mode="append", engine="local").commit
    assert content(other) == content(local)
    lines[300] = lines[300].replace("data", "date")
    objects.put("bad.jsonl", "\n".join(lines).encode())
    with pytest.raises(InvalidData) as caught:
        other.load(f"{bucket}/in/bad.jsonl", mode="merge")
    assert caught.value.violations[0]["line"] == 301


def test_folders_and_globs_of_a_store(bucket: str, empty: Path, tmp_path: Path) -> None:
    objects = open_objects(parse_location(f"{bucket}/in"))
    for number in range(4):
        some = "\n".join(PEOPLE[number * 100 : (number + 1) * 100]).encode()
        packed = number == 3
        name = f"p{number}.jsonl.gz" if packed else f"p{number}.jsonl"
        objects.put(name, gzip.compress(some) if packed else some)
    objects.put("_SUCCESS", b"")
    objects.put("deeper/p9.jsonl", b"{")
    storage = Settings.from_environment().storage
    names = [file.name.rpartition("/")[2] for file in find_files(f"{bucket}/in", storage)]
    assert names == ["p0.jsonl", "p1.jsonl", "p2.jsonl", "p3.jsonl.gz"]
    assert len(find_files(f"{bucket}/in/*.jsonl", storage)) == 3
    assert len(find_files(f"{bucket}/*/p?.jsonl", storage)) == 3
    with pytest.raises(InvalidInput, match="there is no file to load"):
        find_files(f"{bucket}/nowhere", storage)
    graph = bulk_graph(two_graphs(empty, tmp_path, b"")[0])
    assert graph.load(f"{bucket}/in/", mode="append").nodes == {"Person": 400}
