"""The picture of a run record: drawn from its numbers, and from nothing else."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.peers import FASTER
from benchmarks.plot import COLOURS, draw


def test_every_query_and_peer_has_a_dot() -> None:
    numbers = {
        f"{size}/{query}/{peer}": 0.1 * (at + 1)
        for size in ("small", "large")
        for at, query in enumerate(FASTER)
        for peer in COLOURS
    }
    found = ElementTree.fromstring(draw("peers-x.json", numbers))
    dots = [item for item in found.iter() if item.tag.endswith("circle")]
    assert len(dots) == 2 * len(FASTER) * len(COLOURS) + len(COLOURS)
    texts = [item.text for item in found.iter() if item.tag.endswith("text")]
    assert "record peers-x.json" in texts
    assert set(FASTER) <= set(texts)
