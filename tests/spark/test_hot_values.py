"""Values that occur very often are folded before the shuffle; outcomes are those in process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.outcomes import outcome, two_graphs
from tests.support.inline_tasks import bulk_graph

from omnigraph import Graph
from omnigraph.bulk.load.driver import Sizes
from omnigraph.bulk.load.hot_values import HOT_ROWS_MIN, fold_hot_values
from omnigraph.constraints import COUNT

EDGES = 3_000
STORED = b'{"type":"Person","data":{"name":"p0"}}\n{"type":"Note","data":{"id":"n0","text":"t"}}'


@pytest.fixture
def pair(empty: Path, tmp_path: Path) -> tuple[Graph, Graph]:
    local, other = two_graphs(empty, tmp_path, STORED)
    return local, bulk_graph(other, sizes=Sizes(part_bytes=40_000, buckets=3))


def test_of_a_hot_value_the_first_rows_and_the_number_of_the_others_are_kept() -> None:
    values = [f"v{number % 500}" for number in range(2_000)]
    values[::2] = ["hot"] * 1_000
    values += ["hot"] * HOT_ROWS_MIN
    rows = pa.table({"src": values, "at": range(len(values))})
    folded = fold_hot_values(rows, "src", 100)
    hot = [row for row in folded.to_pylist() if row["src"] == "hot"]
    expected = [at for at, value in enumerate(values) if value == "hot"]
    assert [row["at"] for row in hot] == expected[:100]
    assert sum(row[COUNT] for row in hot) == len(expected)
    others = [row["at"] for row in folded.to_pylist() if row["src"] != "hot"]
    assert others == [at for at, value in enumerate(values) if value != "hot"]


@pytest.mark.parametrize("target", ["p0", "nobody"])
@pytest.mark.parametrize("named", [False, True])
def test_edges_of_one_node(target: str, named: bool, pair: tuple[Graph, Graph]) -> None:
    ids = (f'"id":"a{number}"' if named else "" for number in range(EDGES))
    lines = [f'{{"edge":"About","from":"n0","to":"{target}","data":{{{id}}}}}' for id in ids]
    data = "\n".join(lines).encode()
    expected = outcome(pair[0], data, mode="append", engine="local")
    assert outcome(pair[1], data, mode="append") == expected


def test_the_number_of_edges_of_a_hot_source(pair: tuple[Graph, Graph]) -> None:
    data = b"\n".join([b'{"edge":"Knows","from":"p0","to":"p0"}'] * EDGES)
    expected = outcome(pair[0], data, mode="append", engine="local")
    assert expected[:2] == ("constraint_violation", 1)
    assert outcome(pair[1], data, mode="append") == expected


def test_repeated_ids_among_edges_of_a_missing_node(pair: tuple[Graph, Graph]) -> None:
    lines = [
        f'{{"edge":"About","from":"n0","to":"nobody","data":{{"id":"a{number % 2_500}"}}}}'
        for number in range(EDGES)
    ]
    data = "\n".join(lines).encode()
    expected = outcome(pair[0], data, mode="append", engine="local")
    assert outcome(pair[1], data, mode="append") == expected
