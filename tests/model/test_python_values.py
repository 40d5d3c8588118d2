"""What other Python libraries give is a value at every door: parameters, batches, loads."""

from __future__ import annotations

import datetime as dt
import math
from array import array
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, InvalidValue, OmnigraphError, ParameterError
from omnigraph.model.python_values import plain_value
from omnigraph.model.types import PropertyType

SCHEMA = """
node N {
  k: String @key
  b: Bool?
  i: I32?
  j: I64?
  u: U32?
  w: U64?
  f: F32?
  g: F64?
  d: Date?
  t: DateTime?
  s: String?
  l: [I64]?
  v: Vector(3)?
}
"""
TYPES = {
    "b": "Bool",
    "i": "I32",
    "j": "I64",
    "u": "U32",
    "w": "U64",
    "f": "F32",
    "g": "F64",
    "d": "Date",
    "t": "DateTime",
    "s": "String",
    "l": "[I64]",
    "v": "Vector(3)",
}
INSTANT = "2024-02-29T12:30:00.123Z"
ZONE = dt.timezone(dt.timedelta(hours=2))
UUID_TEXT = "12345678-1234-5678-1234-567812345678"

GOOD: list[tuple[str, Any, Any]] = [
    ("b", np.bool_(True), True),
    *(("i", kind(5), 5) for kind in (np.int8, np.int16, np.int32, np.int64)),
    *(("j", kind(5), 5) for kind in (np.uint8, np.uint16, np.uint32, np.uint64)),
    ("w", np.uint64(2**64 - 1), 2**64 - 1),
    ("f", np.float32(0.1), 0.1),
    ("f", np.float16(0.5), 0.5),
    ("g", np.float64(0.1), 0.1),
    ("g", np.float32(0.1), 0.10000000149011612),
    ("g", np.int32(3), 3.0),
    ("g", np.longdouble(0.5), 0.5),
    ("g", Decimal("0.1"), 0.1),
    ("g", Decimal("7"), 7.0),
    ("j", Decimal("9007199254740993"), 9007199254740993),
    ("d", dt.date(2024, 2, 29), "2024-02-29"),
    ("d", np.datetime64("2024-02-29"), "2024-02-29"),
    ("t", dt.datetime(2024, 2, 29, 12, 30, 0, 123_999, dt.UTC), INSTANT),
    ("t", dt.datetime(2024, 2, 29, 14, 30, 0, 123_000, ZONE), INSTANT),
    ("t", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC), "1969-12-31T23:59:59.999Z"),
    ("t", np.datetime64("2024-02-29T12:30:00.123456789"), INSTANT),
    ("t", np.datetime64("1969-12-31T23:59:59.999999"), "1969-12-31T23:59:59.999Z"),
    ("s", np.str_("x"), "x"),
    ("s", UUID(UUID_TEXT), UUID_TEXT),
    ("l", np.array([1, 2, 3]), [1, 2, 3]),
    ("l", np.array([], dtype=np.int64), []),
    ("l", (np.int8(1), 2), [1, 2]),
    ("l", array("q", [1, 2]), [1, 2]),
    ("v", np.array([0.5, 0.25, 1.0], dtype=np.float32), [0.5, 0.25, 1.0]),
    ("v", np.array([1, 2, 3], dtype=np.uint8), [1.0, 2.0, 3.0]),
    ("v", [np.float32(0.5), 1, np.int64(2)], [0.5, 1.0, 2.0]),
]
BAD: list[tuple[str, Any]] = [
    ("i", np.int64(2**31)),
    ("u", np.int8(-1)),
    ("i", np.float64(5.5)),
    ("i", np.bool_(True)),
    ("b", np.int8(1)),
    ("g", np.float64("nan")),
    ("g", np.float32("inf")),
    ("f", np.float64(1e39)),
    ("g", Decimal("0.1000000000000000000001")),
    ("g", Decimal("NaN")),
    ("i", Decimal("1e100000")),
    ("g", np.complex128(1)),
    ("t", dt.datetime(2024, 2, 29, 12)),
    ("t", dt.date(2024, 2, 29)),
    ("d", dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    ("d", np.datetime64("2024-02-29T12")),
    ("t", dt.time(12)),
    ("s", np.bytes_(b"x")),
    ("s", b"x"),
    ("v", np.array([0.5, math.nan, 1.0])),
    ("v", np.array([0.5, 1.0])),
    ("v", np.eye(3)),
    ("l", np.array([1.5])),
    ("l", np.array([1, None])),
    ("l", {1, 2}),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return omnigraph.init(tmp_path_factory.mktemp("values") / "graph", SCHEMA)


def _stored(graph: Graph, name: str) -> Any:
    text = f'query q() {{ match {{ $n: N {{ k: "n" }} }} return {{ $n.{name} as v }} }}'
    return graph.query(text).rows()[0]["v"]


def _doors(graph: Graph, name: str, value: Any) -> dict[str, Any]:
    """Every way to hand a value over."""

    def inserted() -> None:
        with graph.write() as w:
            w.insert("N", {"k": "n", name: value})

    def updated() -> None:
        graph.load({"N": [{"k": "n"}]}, mode="overwrite")
        with graph.write() as w:
            w.update("N", "n", {name: value})

    def loaded() -> None:
        graph.load({"N": [{"k": "n", name: value}]}, mode="overwrite")

    def loaded_record() -> None:
        record = {"type": "N", "data": {"k": "n", name: value}}
        graph.load([record], mode="overwrite")

    def assigned() -> None:
        text = f'query q($v: {TYPES[name]}) {{ update N set {{ {name}: $v }} where k = "n" }}'
        graph.mutate(text, params={"v": value})

    return {d.__name__: d for d in (loaded, loaded_record, updated, assigned)} | (
        {"inserted": inserted} if name == "b" else {}
    )


@pytest.mark.parametrize(("name", "value", "expected"), GOOD)
def test_values_of_other_libraries_are_values(
    graph: Graph, name: str, value: Any, expected: Any
) -> None:
    for door, give in _doors(graph, name, value).items():
        if door == "inserted":
            graph.load({"N": []}, mode="overwrite")
        give()
        assert _stored(graph, name) == expected, door
    operator = "contains" if name == "l" else "="
    if name != "v" and expected != []:
        asked = "$n.l contains $v" if name == "l" else f"$n.{name} {operator} $v"
        kind, given = ("I64", value[0]) if name == "l" else (TYPES[name], value)
        text = f"query q($v: {kind}) {{ match {{ $n: N  {asked} }} return {{ $n.k }} }}"
        assert len(graph.query(text, params={"v": given})) == 1


@pytest.mark.parametrize(("name", "value"), BAD)
def test_values_that_do_not_fit_are_typed_errors(graph: Graph, name: str, value: Any) -> None:
    graph.load({"N": [{"k": "n"}]}, mode="overwrite")
    for door, give in _doors(graph, name, value).items():
        with pytest.raises((InvalidValue, InvalidData, ParameterError)) as problem:
            give()
        assert isinstance(problem.value, OmnigraphError), door
        assert problem.value.message


def test_a_missing_time_is_null(graph: Graph) -> None:
    class NaT(dt.datetime):
        """Like that of pandas: a datetime that is not equal to itself."""

        def __ne__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    for value in (np.datetime64("NaT"), NaT(2024, 1, 1)):
        assert plain_value(value) is None


def test_a_naive_datetime_says_what_is_missing() -> None:
    with pytest.raises(InvalidValue, match="has no time zone") as problem:
        plain_value(dt.datetime(2024, 2, 29, 12))
    assert "tzinfo" in str(problem.value.remedy)


def test_plain_values_stay_the_same_objects() -> None:
    for value in ("x", 1, 2.5, True, None, [1, 2], ("a", "b"), {"a": 1}, b"x"):
        assert plain_value(value) is value


def test_a_parameter_that_is_a_long_array_has_a_digest_of_its_own(tmp_path: Path) -> None:
    schema = "node N { k: String @key  v: Vector(2000)? }"
    graph = omnigraph.init(tmp_path / "graph", schema)
    text = 'query w($v: Vector(2000)) { insert N { k: "n", v: $v } }'
    vector = np.zeros(2000, dtype=np.float32)
    graph.mutate(text, params={"v": vector}, idempotency_key="one")
    other = vector.copy()
    other[1000] = 1  # where the text of an array leaves items out
    with pytest.raises(OmnigraphError) as problem:
        graph.mutate(text, params={"v": other}, idempotency_key="one")
    assert problem.value.code == "idempotency_mismatch"


def test_types_say_which_python_type_they_got() -> None:
    from omnigraph.model.types import SCALARS

    with pytest.raises(InvalidValue, match="a Python complex128"):
        PropertyType(SCALARS["F64"]).accept(np.complex128(1))
