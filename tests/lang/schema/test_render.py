"""The text of a schema that was put together says exactly that schema."""

from __future__ import annotations

import pytest
from tests.lang.schema.support import accept
from tests.lang.schema.test_cases import CASES

from omnigraph.lang.schema.change.merge import merge_schemas
from omnigraph.lang.schema.render import render_schema

ACCEPTED = {
    name: case["schema"]
    for name, case in CASES.items()
    if "schema" in case and "errors" not in case and "previous" not in case
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_every_accepted_case_can_be_written_again(text: str) -> None:
    schema = accept(text)
    assert accept(render_schema(schema)).hash == schema.hash


def test_a_schema_merged_with_itself_is_itself() -> None:
    schema = accept("interface I { x: I32? @index } node A implements I { y: String @key }")
    merged, conflicts = merge_schemas(schema, schema, schema)
    assert merged is not None
    assert (merged.hash, conflicts) == (schema.hash, [])
    assert merged.nodes == schema.nodes
