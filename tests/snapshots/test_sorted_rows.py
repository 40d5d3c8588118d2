"""Rows by id in bounded memory, and their text."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from random import Random

import pytest
from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.snapshots import export
from omnigraph.snapshots.sorted_rows import sorted_rows

SCHEMA = "node Person { name: String @key  note: String? }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("sorted") / "g", SCHEMA)
    names = [f"p{n}" for n in range(20_000)]
    Random(1).shuffle(names)
    made.load(
        [{"type": "Person", "data": {"name": name, "note": name[::-1]}} for name in names],
        mode="append",
    )
    made.mutate('query q() { delete Person where name = "p7" }')
    return made


@pytest.mark.parametrize("sort_bytes", [0, 100_000, 1 << 30])
def test_rows_come_in_the_order_of_their_ids_whatever_fits_into_memory(
    graph: Graph, sort_bytes: int
) -> None:
    repository = repository_of(graph)
    table = repository.tables.open(graph.snapshot().pin("node:Person").ref)
    blocks = list(sorted_rows(table, 1_000, sort_bytes=sort_bytes))
    assert max(block.num_rows for block in blocks) <= 1_000
    rows = [row for block in blocks for row in block.select(["id", "note"]).to_pylist()]
    names = sorted({f"p{n}" for n in range(20_000)} - {"p7"})
    assert rows == [{"id": name, "note": name[::-1]} for name in names]


def test_texts_are_escaped_as_json_escapes_them(graph: Graph, tmp_path: Path) -> None:
    texts = ['"', "\\", "\\\\n", "\n\r\t\b\f", "\x00", "\x1f", "\x7f", "é\u2028", "", 'a"b\\"c']
    for number in range(len(texts)):
        some = texts[: number + 1]
        copy = omnigraph.init(tmp_path / str(number), SCHEMA)
        with copy.write() as w:
            for at, text in enumerate(some):
                w.insert("Person", {"name": f"p{at:02d}", "note": text})
        lines = b"".join(copy.export()).decode().split("\n")[:-1]
        for line, text in zip(lines, some, strict=True):
            assert line.endswith(f'"note":{json.dumps(text, ensure_ascii=False)}}}}}'), text


def test_an_export_that_is_not_read_to_its_end_leaves_no_thread(graph: Graph) -> None:
    chunks = export.export(repository_of(graph), graph.snapshot(), graph.schema())
    assert next(chunks)
    chunks.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("omnigraph-map")]
