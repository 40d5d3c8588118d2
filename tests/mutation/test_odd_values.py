"""Look-ups are exact for every value a property can hold, with and without an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConstraintViolation, KeyConflict
from omnigraph.maintenance import upkeep

TEXTS = ["", "\x00", "a\x00b", "'", "''", "\\", "\\'", '"', "`", "é", "😀", "\u2028", "%", "_"]
TEXTS += ["a" * 5_000, "\n", "\r\n", "\t", " ", "null", "--", "/*", "$1", "{}", "\ufeff"]
NUMBERS: dict[str, list[Any]] = {
    "u": [0, 1, 2**63, 2**64 - 1],
    "l": [-(2**63), 2**63 - 1, 0, -1],
    "i": [-(2**31), 2**31 - 1],
    "w": [2**32 - 1],
    "f": [0.0, 0.1, 1e300, 5e-324, 2.0**53],
    "x": [0.1, -0.0, 16777216.0],
    "d": [0, -800_000, 2**31 - 1],
    "t": [0, -1, 5, 10**15],
    "b": [True, False],
}
SCHEMA = """
node S { s: String @key  upPer: String? @unique  order: I32? }
node U {
  u: U64? @unique  l: I64? @unique  i: I32? @unique  w: U32? @unique  f: F64? @unique
  x: F32? @unique  d: Date? @unique  t: DateTime? @unique  b: Bool? @unique
}
edge E: S -> S { select: String? @unique }
"""


@pytest.fixture(params=["scanned", "indexed"])
def graph(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any) -> Graph:
    if request.param == "indexed":
        monkeypatch.setattr(upkeep, "LARGE_WRITE_ROWS", 3)
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    numbers = [{name: value} for name, values in NUMBERS.items() for value in values]
    texts = [{"s": text, "upPer": text} for text in TEXTS]
    edges = [{"from": text, "to": text, "select": text} for text in TEXTS]
    graph.load({"S": texts, "U": numbers, "E": edges}, mode="append")
    return graph


def test_every_text_is_found_again(graph: Graph) -> None:
    for number, text in enumerate(TEXTS):
        done = graph.mutate(
            "query q($s: String, $o: I32) { update S set { order: $o } where upPer = $s }",
            params={"s": text, "o": number},
        )
        assert done.affected_nodes == 1, repr(text)
    with pytest.raises(KeyConflict) as taken:
        graph.load({"S": [{"s": text} for text in TEXTS]}, mode="append")
    assert taken.value.details["total"] == len(TEXTS)
    with pytest.raises(ConstraintViolation) as repeated:
        graph.load(
            {
                "S": [{"s": f"new {n}", "upPer": text} for n, text in enumerate(TEXTS)],
                "E": [{"from": text, "to": text, "select": text} for text in TEXTS],
            },
            mode="append",
        )
    assert repeated.value.total == 2 * len(TEXTS)
    assert {v["rule"] for v in repeated.value.violations} == {"unique"}
    done = graph.mutate("query q($s: String) { delete S where s = $s }", params={"s": "\x00"})
    assert (done.affected_nodes, done.affected_edges) == (1, 1)


def test_every_number_is_found_again(graph: Graph) -> None:
    for name, values in NUMBERS.items():
        rows = [{name: -value if value == 0.0 and name in "fx" else value} for value in values]
        with pytest.raises(ConstraintViolation) as repeated:
            graph.load({"U": rows}, mode="append")
        assert repeated.value.total == len(values), name
