"""Large frames are grouped and sorted block by block, with the same result as at once."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader, ReadOptions
from omnigraph.engine.exec import match_frame, sort
from omnigraph.engine.exec.sort import SortColumn, first_rows, ordered_rows, string_prefixes
from omnigraph.lang.query.typed_expressions import SCORE
from omnigraph.predicates.values import Values
from tests.engine.graphs import use_small_blocks
from tests.graphs import repository

ROWS = 3_000
SCHEMA = """
node Item {
  name: String @key  text: String?  city: String?  size: I32  wide: I64?  score: F64?
  on: Bool?  day: Date?  late: String?  later: I32?  never: String?
}
edge Near: Item -> Item
"""
TEXTS = ["", "a", "a\0", "ab", "é", "zzzzzzzz", "zzzzzzzzz", "zzzzzzzza", "𝄞", "longer than eight"]
KEYS = ["city", "on", "day", "size", "wide", "text", "name", "score"]
AGGREGATES = [
    f"{function}($i.{name})"
    for name in ("size", "wide", "score", "text", "city", "day", "late", "later", "never")
    for function in ("count", "min", "max", "sum", "avg")
    if function == "count"
    or (function in ("min", "max") and name != "day")
    or name in ("size", "wide", "score", "later")
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    rng = Random(7)

    def maybe(value: Any) -> Any:
        return value if rng.random() < 0.8 else None

    items = [
        {
            "name": f"{rng.choice(TEXTS)}{at:05d}",
            "text": maybe(rng.choice(TEXTS) + rng.choice(TEXTS) + str(rng.randrange(900))),
            "city": maybe(f"city{rng.randrange(7)}"),
            "size": rng.randrange(11),
            "wide": maybe(rng.choice([2**62, -(2**62), 3, rng.randrange(10)])),
            "score": maybe(rng.random()),
            "on": maybe(rng.random() < 0.5),
            "day": maybe(f"2024-01-0{rng.randrange(1, 5)}"),
            "late": None if at < 600 else f"word{rng.randrange(4)}",
            "later": None if at < 600 or 1_000 < at < 1_600 else rng.randrange(9),
        }
        for at in range(ROWS)
    ]
    near = [
        {"from": rng.choice(items)["name"], "to": rng.choice(items)["name"]} for _ in range(ROWS)
    ]
    made = omnigraph.init(tmp_path_factory.mktemp("blocks") / "g", SCHEMA)
    made.load({"Item": items, "Near": near}, mode="append")
    return made


@pytest.fixture
def both(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rows of a query at once and in blocks, and how many blocks there were."""

    def ask(text: str) -> tuple[list[Any], list[Any], int]:
        with monkeypatch.context() as patch:
            patch.setattr(sort, "PARTITION_ROWS_MIN", 10 * ROWS)
            at_once = graph.query(text).rows()
        blocks: list[object] = []
        part = match_frame.MatchFrame.part

        def noted(self: match_frame.MatchFrame, rows: slice) -> match_frame.MatchFrame:
            blocks.append(rows)
            return part(self, rows)

        with monkeypatch.context() as patch:
            use_small_blocks(patch, rows=256)
            patch.setattr(match_frame.MatchFrame, "part", noted)
            in_blocks = graph.query(text).rows()
        return at_once, in_blocks, len(blocks)

    return ask


@pytest.mark.parametrize("condition", ["", "$i.size >= 4", "$i.size >= 9"])
@pytest.mark.parametrize("key", [None, "on", "city", "day", "size", "wide"])
def test_groups_are_the_same_in_blocks(both: Any, key: str | None, condition: str) -> None:
    keys = "" if key is None else f"$i.{key} as key, "
    for aggregate in AGGREGATES:
        text = (
            f"query q() {{ match {{ $i: Item  {condition} }} "
            f"return {{ {keys}{aggregate} as found, count($i) as n }} }}"
        )
        at_once, in_blocks, blocks = both(text)
        assert in_blocks == at_once, text
        can = not ("score" in aggregate and aggregate[:3] in ("sum", "avg"))
        can = can and "text" not in aggregate
        assert (blocks > 1) == can or "wide" in aggregate, text


@pytest.mark.parametrize("keys", [("city", "on"), ("on", "size", "day")])
def test_groups_by_several_keys_and_over_weighted_rows_are_the_same(
    both: Any, keys: tuple[str, ...]
) -> None:
    names = ", ".join(f"$i.{name} as {name}" for name in keys)
    for pattern in ("$i: Item", "$i: Item  $i near $j"):
        text = (
            f"query q() {{ match {{ {pattern} }} "
            f"return {{ {names}, count($i) as n, avg($i.size) as mean }} }}"
        )
        at_once, in_blocks, blocks = both(text)
        assert in_blocks == at_once
        assert blocks


@pytest.mark.parametrize(
    "output",
    [
        "count($i) as n, sum($i.size) as s",
        "$i.size as size, count($i) as n, avg($i.later) as s",
        "$i.name as name, $i.size as size",
    ],
)
def test_chosen_rows_that_stand_for_several_matches_are_counted_as_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """Everything that is chosen has two neighbours, and nobody asks which."""
    graph = omnigraph.init(
        tmp_path / "g", SCHEMA + "node Place { at: I32 @key }  edge In: Item -> Place"
    )
    items = [{"name": f"i{at:03}", "size": at % 5, "later": at % 3} for at in range(600)]
    places = [{"at": at} for at in range(1_500)]
    ends = [{"from": f"i{at:03}", "to": str(2 * at + by)} for at in range(600) for by in (0, 1)]
    graph.load({"Item": items, "Place": places, "In": ends}, mode="append")
    pattern = 'match { $i: Item  $i.size >= 1  $i "in" $p }'
    for limit in ("", " limit 7", " limit 700"):
        text = f"query q() {{ {pattern} return {{ {output} }}{limit} }}"
        expected = graph.query(text).rows()
        with monkeypatch.context() as patch:
            use_small_blocks(patch, rows=100)
            assert graph.query(text).rows() == expected
    if output.startswith("count"):
        assert expected == [{"n": 960, "s": 2 * sum(at % 5 for at in range(600))}]


@pytest.mark.parametrize("way", ["", " desc"])
@pytest.mark.parametrize("first", KEYS)
def test_the_first_rows_are_the_same_in_blocks(both: Any, first: str, way: str) -> None:
    for second in (None, "size desc", "text", "city desc"):
        for limit in (1, 10, 400, ROWS - 1):
            more = "" if second is None else f", $i.{second}"
            text = (
                f"query q() {{ match {{ $i: Item  $i.size >= 1 }} "
                f"return {{ $i.name as name, $i.{first} as first }} "
                f"order {{ $i.{first}{way}{more} }} limit {limit} }}"
            )
            at_once, in_blocks, blocks = both(text)
            assert in_blocks == at_once, text
            assert blocks or limit > 2_600, text


@pytest.mark.parametrize("limit", [1, 10, 200, 400, 2_000, ROWS])
def test_the_first_matches_of_no_order_are_the_same_in_blocks(both: Any, limit: int) -> None:
    pattern = "match { $i: Item  $i.size >= 2 } return { $i.name as name }"
    at_once, in_blocks, _ = both(f"query q() {{ {pattern} limit {limit} }}")
    assert in_blocks == at_once
    assert in_blocks == both(f"query q() {{ {pattern} }}")[0][:limit]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("texts", [[""], ["", "a"], TEXTS, [*TEXTS, ""], ["short", "", "x"]])
def test_beginnings_compare_as_the_strings_do(kind: pa.DataType, texts: list[str]) -> None:
    array = pa.array([*TEXTS, *texts, None], type=kind).slice(len(TEXTS))
    found = string_prefixes(array, np.arange(len(texts))).tolist()
    for a, x in zip(texts, found, strict=True):
        assert x == int.from_bytes(a.encode()[:8].ljust(8, b"\0"), "big")
        for b, y in zip(texts, found, strict=True):
            assert x == y or (x < y) == (a.encode() < b.encode())
    short = pa.array(texts, type=kind)
    assert string_prefixes(short, np.arange(len(texts))).tolist() == found


def test_a_last_block_of_few_rows_is_a_block_like_any_other(both: Any) -> None:
    text = "query q() { match { $i: Item } return { $i.name as name, count($i) as n } }"
    assert both(text)[2] == 1, "as many groups as rows"
    for key in ("city", "size"):
        text = f"query q() {{ match {{ $i: Item }} return {{ $i.{key} as key, count($i) as n }} }}"
        assert both(text)[2] == -(-ROWS // 256)


@pytest.mark.parametrize("descending", [False, True])
def test_what_is_no_number_comes_last_whatever_follows(descending: bool) -> None:
    scores = np.full(2_000, np.nan)
    scores[[5, 1_500]] = 1.0
    columns = [
        SortColumn.of(Values(SCORE, scores), descending=descending),
        SortColumn(np.arange(2_000)[::-1].copy()),
    ]

    def known(column: SortColumn) -> Any:
        return lambda rows, rough=False: column if rows is None else column.take(rows)

    for limit in (1, 2, 4, 1_999):
        found = ordered_rows([known(column) for column in columns], [], 2_000, limit)
        assert found.tolist() == first_rows(columns, [], 2_000, limit).tolist()


def test_a_look_at_few_entities_makes_no_list_of_all(graph: Graph) -> None:
    cache = MemoryCache(1 << 30)
    reader = Reader(repository(graph), cache=cache)
    rows = reader.query(
        'query q() { match { $i: Item { name: "a00001" } } return { $i.size as size } }',
        options=ReadOptions(access="cache"),
    ).rows()
    assert len(rows) <= 1
    assert cache.get(("all", ROWS)) is None
