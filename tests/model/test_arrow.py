"""The physical types of columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.model.types import SCALARS, PropertyType

ARROW = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.date64(),
    "Blob": pa.large_binary(),
}


@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_has_its_column_type(name: str) -> None:
    assert SCALARS[name].arrow_type() == ARROW[name]


def test_lists_and_vectors_have_nullable_items() -> None:
    item = pa.field("item", pa.int32(), nullable=True)
    assert PropertyType(SCALARS["I32"], is_list=True).arrow_type() == pa.list_(item)
    item = pa.field("item", pa.float32(), nullable=True)
    assert PropertyType(SCALARS["F32"], dimensions=3).arrow_type() == pa.list_(item, 3)


def test_an_enum_is_a_string_column() -> None:
    assert PropertyType(SCALARS["String"], enum=("a",)).arrow_type() == pa.string()
