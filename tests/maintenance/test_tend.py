"""Upkeep after a load that left it out."""

from __future__ import annotations

from pathlib import Path

import omnigraph
from omnigraph.maintenance.upkeep import LARGE_WRITE_ROWS


def test_a_load_without_upkeep_is_tended_later(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", "node City { name: String @key }")
    rows = LARGE_WRITE_ROWS + 1
    lines = "".join(f'{{"type":"City","data":{{"name":"c{n}"}}}}\n' for n in range(rows))
    loaded = graph.load(lines.encode(), mode="append", upkeep=False)
    assert {index.state for index in graph.maintenance.indexes()} == {"missing"}
    assert graph.maintenance.tend(loaded) == ["node:City"]
    assert {index.state for index in graph.maintenance.indexes()} == {"current"}
    assert graph.maintenance.tend(loaded) == []
    assert len(graph.history.commits()) == 2
