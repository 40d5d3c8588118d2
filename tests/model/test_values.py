"""JSON to stored values and back, and canonical spelling."""

from __future__ import annotations

import json
import math
import pickle
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.errors import InvalidValue
from omnigraph.model.calendar import format_date, format_instant, parse_date, parse_instant
from omnigraph.model.floats import round_single, shortest_float
from omnigraph.model.types import SCALARS, PropertyType


def kind(text: str) -> PropertyType:
    """A type from a short spelling: ``I32``, ``[I32]?``, ``Vector(2)``, ``enum(a, b)``."""
    nullable = text.endswith("?")
    text = text.removesuffix("?")
    if text.startswith("enum"):
        members = tuple(sorted(text[5:-1].split(", ")))
        return PropertyType(SCALARS["String"], nullable, enum=members)
    if text.startswith("Vector"):
        return PropertyType(SCALARS["F32"], nullable, dimensions=int(text[7:-1]))
    if text.startswith("["):
        return PropertyType(SCALARS[text[1:-1]], nullable, is_list=True)
    return PropertyType(SCALARS[text], nullable)


ACCEPTED: list[tuple[str, Any, Any]] = [
    ("String", "", ""),
    ("String", "日本\u0000", "日本\u0000"),
    ("Bool", True, True),
    ("I32", -(2**31), -(2**31)),
    ("U32", 2**32 - 1, 2**32 - 1),
    ("I64", 2**63 - 1, 2**63 - 1),
    ("U64", 2**64 - 1, 2**64 - 1),
    ("F64", 3, 3.0),
    ("F64", 2**70, float(2**70)),
    ("F32", 0.1, 0.10000000149011612),
    ("Date", "2024-02-29", 19782),
    ("Date", "0000-01-01", -719528),
    ("Date", -1, -1),
    ("DateTime", "2024-02-29T12:00:00Z", 1709208000000),
    ("DateTime", "2024-02-29t13:00:00.9999+01:00", 1709208000999),
    ("DateTime", "1969-12-31 23:59:59.9999Z", -1),
    ("DateTime", 5, 5),
    ("enum(a, b)", "b", "b"),
    ("[I32]", [], []),
    ("[Date]", ["1970-01-02", 3], [1, 3]),
    ("Vector(2)", [1, 0.5], [1.0, 0.5]),
    ("Blob", "base64:aGk=", b"hi"),
    ("Blob", "base64:", b""),
    ("Blob", "s3://bucket/x", "s3://bucket/x"),
    ("I32?", None, None),
]


@pytest.mark.parametrize(("text", "value", "stored"), ACCEPTED)
def test_json_that_is_accepted(text: str, value: Any, stored: Any) -> None:
    found = kind(text).accept(value)
    assert found == stored
    assert type(found) is type(stored)


REFUSED: list[tuple[str, Any]] = [
    ("I32", None),
    ("String", 1),
    ("String", "\ud800"),
    ("Bool", 1),
    ("Bool", "true"),
    ("I32", True),
    ("I32", "41"),
    ("I32", 5.0),
    ("I32", 2**31),
    ("I32", -(2**31) - 1),
    ("I64", 2**63),
    ("U32", -1),
    ("U64", 2**64),
    ("U64", 10**5000),
    ("F64", "1"),
    ("F64", True),
    ("F64", math.nan),
    ("F64", math.inf),
    ("F64", 10**400),
    ("F32", 1e39),
    ("Date", "2023-02-29"),
    ("Date", "2024-2-9"),
    ("Date", "2024-02-29T00:00:00Z"),
    ("Date", "٢٠٢٤-٠٢-٢٩"),
    ("Date", 2**31),
    ("Date", 1.0),
    ("DateTime", "2024-02-29"),
    ("DateTime", "2024-02-29T12:00:00"),
    ("DateTime", "2024-02-29T24:00:00Z"),
    ("DateTime", "2024-02-29T12:60:00Z"),
    ("DateTime", "2024-02-29T12:00:00+24:00"),
    ("DateTime", 2**63),
    ("enum(a, b)", "c"),
    ("enum(a, b)", 1),
    ("[I32]", 1),
    ("[I32]", [1, None]),
    ("[I32]", ["1"]),
    ("Vector(2)", [1]),
    ("Vector(2)", [1, "x"]),
    ("Vector(2)", [1, None]),
    ("Vector(2)", [1, 1e39]),
    ("Blob", "plain"),
    ("Blob", "base64:a"),
    ("Blob", "base64:aGk=\n"),
    ("Blob", {}),
]


@pytest.mark.parametrize(("text", "value"), REFUSED, ids=range(len(REFUSED)))
def test_json_that_is_refused(text: str, value: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        kind(text).accept(value)
    assert len(caught.value.message) < 200


PRODUCED: list[tuple[str, Any, Any]] = [
    ("Date", 19782, "2024-02-29"),
    ("Date", 2932897, "+10000-01-01"),
    ("Date", -719529, "-0001-12-31"),
    ("DateTime", 1709208000000, "2024-02-29T12:00:00.000Z"),
    ("DateTime", -1, "1969-12-31T23:59:59.999Z"),
    ("F32", 0.10000000149011612, 0.1),
    ("F64", math.nan, "NaN"),
    ("F64", -math.inf, "-Infinity"),
    ("F32", math.inf, "Infinity"),
    ("I64", 2**60, 2**60),
    ("[Date]", [0, None], ["1970-01-01", None]),
    ("[DateTime]", [0], ["1970-01-01T00:00:00.000Z"]),
    ("Vector(2)", [1.0, 0.10000000149011612], [1.0, 0.1]),
    ("String?", None, None),
    ("enum(a, b)", "a", "a"),
]


@pytest.mark.parametrize(("text", "stored", "shown"), PRODUCED)
def test_stored_values_are_shown_the_same_everywhere(text: str, stored: Any, shown: Any) -> None:
    assert kind(text).produce(stored) == shown
    assert kind(text).export(stored) == shown


@given(st.integers(min_value=-(2**31), max_value=2**31 - 1))
@example(-(2**31))
@example(2**31 - 1)
def test_every_stored_date_reads_back(days: int) -> None:
    assert kind("Date").accept(kind("Date").export(days)) == days


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
@example(-(2**63))
@example(2**63 - 1)
def test_every_stored_instant_reads_back(millis: int) -> None:
    assert kind("DateTime").accept(kind("DateTime").export(millis)) == millis


@pytest.mark.parametrize("text", ["+5881580-07-12", "-5877641-06-22", "+99999-13-01", "+999-01-01"])
def test_a_date_that_no_column_holds_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        kind("Date").accept(text)


def test_a_blob_is_exported_but_never_produced() -> None:
    blob = kind("Blob")
    assert blob.export(b"hi") == "base64:aGk="
    assert blob.export("s3://bucket/x") == "s3://bucket/x"
    with pytest.raises(InvalidValue):
        blob.produce(b"hi")


def test_large_integers_can_be_made_safe_for_javascript() -> None:
    listed = kind("[U64]")
    assert listed.produce([1, 2**53], js_safe=True) == [1, "9007199254740992"]
    assert kind("I32").produce(7, js_safe=True) == 7


def test_lists_and_vectors_have_no_spelling() -> None:
    for text in ("[I32]", "Vector(2)", "Blob"):
        with pytest.raises(InvalidValue):
            kind(text).spell(1)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_float_reads_back_the_same(value: float) -> None:
    text = shortest_float(value)
    assert float(text) == value
    assert "e" not in text.lower()
    assert not text.endswith((".0", "."))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_spelled_single_float_reads_back_the_same_and_is_no_longer(value: float) -> None:
    text = shortest_float(value, single=True)
    assert round_single(float(text)) == value
    assert len(text) <= len(shortest_float(value))


def test_single_floats_are_spelled_like_other_libraries_do() -> None:
    """Powers of two are where shortest spellings are hard to get right."""
    import numpy as np

    for exponent in range(-149, 128):
        value = math.ldexp(1.0, exponent)
        wanted = np.format_float_positional(np.float32(value), unique=True, trim="-")
        assert shortest_float(value, single=True) == wanted
        assert shortest_float(-value, single=True) == "-" + wanted


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_rounding_to_single_is_what_storing_does(bits: int) -> None:
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    if not math.isnan(value):
        assert round_single(value) == value


@given(st.dates())
def test_dates_agree_with_the_standard_library(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert parse_date(day.isoformat()) == days
    assert format_date(days) == day.isoformat()


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=-3, minutes=-30)))))
def test_instants_agree_with_the_standard_library(instant: datetime) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    millis = (instant - epoch) // timedelta(milliseconds=1)
    assert parse_instant(instant.isoformat()) == millis
    assert parse_instant(format_instant(millis)) == millis or not 0 < instant.year < 9999


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_every_stored_instant_can_be_shown(millis: int) -> None:
    assert format_instant(millis).endswith("Z")


TYPES = ["String", "I32?", "[F64]", "[Date]?", "Vector(3)", "Vector(1)?", "enum(a, b)", "Blob?"]


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_written_as_it_was_declared(text: str) -> None:
    assert str(kind(text)) == text


@pytest.mark.parametrize("text", TYPES)
def test_a_type_survives_json_and_pickle(text: str) -> None:
    assert PropertyType.from_json(json.loads(json.dumps(kind(text).to_json()))) == kind(text)
    assert pickle.loads(pickle.dumps(kind(text))) == kind(text)


def test_what_a_type_can_be_used_for() -> None:
    assert kind("I32").is_numeric
    assert not kind("[I32]").is_numeric
    assert not kind("Vector(2)").is_numeric
    assert kind("enum(a, b)").is_string
    assert not kind("enum(a, b)").is_plain_string
    assert not kind("[String]").is_string
    assert kind("String?").required() == kind("String")
