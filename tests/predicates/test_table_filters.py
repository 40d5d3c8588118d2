"""Filters handed to tables: what Spark pushes down, against brute force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.spark.source import plan_of, sql_condition
from tests.predicates.model import INTEGERS, VALUES, satisfies
from tests.predicates.surfaces import KINDS, make

datasource = pytest.importorskip("pyspark.sql.datasource")
FILTERS = {
    "=": "EqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}


@pytest.mark.parametrize("indexed", [False, True])
def test_filters_that_are_pushed_down_keep_exactly_what_matches(
    tmp_path: Path, indexed: bool
) -> None:
    held = make(tmp_path / "graph", 1)
    if indexed:
        held.graph.build_indexes()
    plan = plan_of({"path": held.graph.uri, "type": "Thing", "columns": "k"})
    schema, taken = plan.table().schema, 0  # type: ignore[union-attr]
    for kind in KINDS:
        asked: list[Any] = list(VALUES[kind])
        if kind in INTEGERS:  # Spark reads U32 as a wider type
            asked += [value for value in VALUES["I64"] if value not in asked]
        for value in asked:
            filters = [
                (op, getattr(datasource, n)((f"x{kind}",), value)) for op, n in FILTERS.items()
            ]
            filters.append(("=", datasource.In((f"x{kind}",), (value,))))
            for op, item in filters:
                texts, left = sql_condition([item], schema)
                if left:
                    assert not texts
                    continue
                taken += 1
                rows = [
                    r for s in plan.shares() for b in plan.read(s, texts[0]) for r in b.to_pylist()
                ]
                found = {row["k"] for row in rows}
                wanted = held.keys(lambda v, k=kind, o=op, a=value: satisfies(k, v[k], o, a))
                assert found == wanted, (kind, op, value, texts)
    assert taken > 300
