"""Coercion of columns: the same values and the same errors as value by value."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.constraints.canonical import derive_ids, spell_column, tuple_keys
from omnigraph.constraints.coerce import coerce_column, relaxed
from omnigraph.errors import InvalidValue
from omnigraph.lang.schema import NodeType, accept_schema, entity_id, unique_tuple
from omnigraph.model.types import SCALARS, PropertyType

SCALAR_NAMES = [name for name in SCALARS if name != "Blob"]
NUMBERS: list[Any] = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 + 1, 2**63 - 1]
FLOATS: list[Any] = [0.0, -0.0, 0.1, 1e39, -1e39, 1e308, float("nan"), float("inf"), 16777217.0]
TEXTS: list[Any] = [
    "", "a", "2024-02-29", "2023-02-29", "2024-2-9", "2024-02-29T12:00:00Z",
    "2024-02-29T12:00:00.1234Z", "2024-02-29T12:00:60Z", "2024-02-29t12:00:00z",
    "2024-02-29 12:00:00+02:00", "2024-02-29T24:00:00Z", "2024-02-29T12:00:00", "0000-01-01",
    "0000-00-00", "9999-12-31T23:59:59.999Z", "2024-02-29T12:00:00+24:00", "12024-02-29",
]  # fmt: skip
INPUTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), NUMBERS),
    "int8": (pa.int8(), [0, 1, -1, 127]),
    "uint64": (pa.uint64(), [0, 1, 2**64 - 1, 2**63]),
    "float64": (pa.float64(), FLOATS),
    "float32": (pa.float32(), [0.0, 0.5, 1.5]),
    "string": (pa.string(), TEXTS),
    "large_string": (pa.large_string(), TEXTS),
    "bool": (pa.bool_(), [True, False]),
    "null": (pa.null(), [None, None]),
}


def stored(column: pa.Array | None, kind: PropertyType) -> list[Any]:
    """What a column holds, as stored values."""
    assert column is not None
    family = kind.scalar.family
    if family in ("date", "datetime"):
        item = pa.int32() if family == "date" else pa.int64()
        column = column.cast(pa.list_(item) if kind.is_list else item)
    found: list[Any] = column.to_pylist()
    return found


def expected(kind: PropertyType, values: list[Any]) -> tuple[list[Any], set[int]]:
    found, refused = [], set()
    for at, value in enumerate(values):
        try:
            found.append(relaxed(kind).accept(value))
        except InvalidValue:
            found.append(None)
            refused.add(at)
    return found, refused


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", SCALAR_NAMES)
def test_a_column_is_taken_exactly_as_its_values_are(name: str, given: str) -> None:
    kind = PropertyType(SCALARS[name])
    arrow, values = INPUTS[given]
    for some in [*([value] for value in values), [*values, None], [None, values[0]]]:
        column = pa.chunked_array([pa.array(some, arrow)])
        found = coerce_column(column, kind)
        wanted, refused = expected(kind, pa.array(some, arrow).to_pylist())
        assert set(found.problems) == refused, some
        assert repr(stored(found.column, kind)) == repr(wanted), some


@pytest.mark.parametrize("name", SCALAR_NAMES)
def test_lists_and_vectors_are_taken_item_by_item(name: str) -> None:
    rng = Random(name)
    lists = PropertyType(SCALARS[name], is_list=True)
    for arrow, pool in INPUTS.values():
        values = [
            None if rng.random() < 0.2 else [rng.choice(pool) for _ in range(rng.randint(0, 3))]
            for _ in range(6)
        ]
        for wrap in (pa.list_(arrow), pa.large_list(arrow)):
            column = pa.array(values, wrap)
            found = coerce_column(column.slice(1), lists)
            wanted, refused = expected(lists, column.slice(1).to_pylist())
            assert set(found.problems) == refused
            assert repr(stored(found.column, lists)) == repr(wanted)


def test_vectors_have_their_length_and_finite_numbers() -> None:
    kind = PropertyType(SCALARS["F32"], dimensions=2)
    column = pa.array([[1, 2], None, [1], [1, 2, 3], [1, None], [1e300, 0]], pa.list_(pa.float64()))
    found = coerce_column(column, kind)
    assert set(found.problems) == {2, 3, 4, 5}
    assert stored(found.column, kind) == [[1.0, 2.0], None, None, None, None, None]
    fixed = coerce_column(pa.array([[1, 2], None], pa.list_(pa.float32(), 2)), kind)
    assert stored(fixed.column, kind) == [[1.0, 2.0], None]


def test_blobs_are_bytes_or_text() -> None:
    kind = PropertyType(SCALARS["Blob"])
    found = coerce_column(pa.array(["base64:AA==", "s3://b/x", None, "base64:!"]), kind)
    assert found.values == [b"\x00", "s3://b/x", None, None]
    assert set(found.problems) == {3}
    assert coerce_column(pa.array([b"\x00", None]), kind).values == [b"\x00", None]


def test_times_of_other_arrow_types() -> None:
    day, instant = PropertyType(SCALARS["Date"]), PropertyType(SCALARS["DateTime"])
    days = pa.array([0, 19782, None], pa.int32()).cast(pa.date32())
    assert stored(coerce_column(days, day).column, day) == [0, 19782, None]
    assert stored(coerce_column(days, instant).column, instant) == [0, 19782 * 86_400_000, None]
    ns = pa.array([5_999_999, -1, None], pa.timestamp("ns"))
    assert stored(coerce_column(ns, instant).column, instant)[0] == 5
    assert set(coerce_column(pa.array([1.5]), instant).problems) == {0}


SCHEMA = """
node N { s: String  i: I64  b: Bool  f: F32  g: F64  d: Date  t: DateTime
  @key(s, i, b, f, g, d, t)  @unique(s, i)  @unique(f)  @unique(t) }
"""


def test_spellings_of_columns_are_those_of_values() -> None:
    numbers = iter(range(1_000))
    node = accept_schema(SCHEMA, mint=lambda: f"i{next(numbers):04d}").nodes["N"]
    assert isinstance(node, NodeType)
    rows = [
        {
            "s": 'a"é',
            "i": -(2**63),
            "b": True,
            "f": 0.10000000149011612,
            "g": 1e21,
            "d": -1,
            "t": 0,
        },
        {"s": "1:2", "i": 5, "b": False, "f": -0.0, "g": 0.1, "d": 19782, "t": -5},
        {"s": "1", "i": 2, "b": False, "f": 16777216.0, "g": 5e-324, "d": 0, "t": 10**15},
    ]
    columns = {
        "s": pa.array([r["s"] for r in rows]),
        "i": pa.array([r["i"] for r in rows], pa.int64()),
        "b": pa.array([r["b"] for r in rows]),
        "f": pa.array([r["f"] for r in rows], pa.float32()),
        "g": pa.array([r["g"] for r in rows], pa.float64()),
        "d": pa.array([r["d"] for r in rows], pa.int32()).cast(pa.date32()),
        "t": pa.array([r["t"] for r in rows], pa.int64()).cast(pa.date64()),
    }
    table = pa.table(columns)
    for name, column in columns.items():
        kind = node.properties[name].type
        assert spell_column(column, kind).to_pylist() == [kind.spell(r[name]) for r in rows]
    assert derive_ids(node, table).to_pylist() == [entity_id(node, row) for row in rows]
    for group in node.unique:
        keys = tuple_keys(node, group, table).to_pylist()
        tuples = [unique_tuple(node, group, row) for row in rows]
        for one in range(len(rows)):
            for other in range(len(rows)):
                assert (keys[one] == keys[other]) == (tuples[one] == tuples[other])


def test_tuple_keys_are_unambiguous() -> None:
    numbers = iter(range(1_000))
    text = "node N { a: String  b: String?  @unique(a, b) }"
    node = accept_schema(text, mint=lambda: f"i{next(numbers)}").nodes["N"]
    pairs = [("a", "bc"), ("ab", "c"), ("1:a", "b"), ("", "1:a1:b"), ("a", None)]
    table = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    keys = tuple_keys(node, ("a", "b"), table).to_pylist()
    assert keys[-1] is None
    assert len(set(keys)) == len(pairs)
