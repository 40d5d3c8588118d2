"""Random graphs and queries: the engine against brute force, on every access path.

``OMNIGRAPH_ORACLE_QUERIES`` asks for more than the usual number; ``OMNIGRAPH_ORACLE_SEED`` for
others.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.graph import Graph
from omnigraph.query import bind_parameters, compile_query
from omnigraph.query.plan import ReadPlan
from omnigraph.read.access import Access
from omnigraph.read.engine import ReadOptions
from omnigraph.syntax import SourceError
from tests.read.generate import Shape, random_query, random_records, random_shape
from tests.read.graphs import make_graph
from tests.read.oracle import Model, Oracle, same_rows

QUERIES = int(os.environ.get("OMNIGRAPH_ORACLE_QUERIES", "1000"))
SEED = int(os.environ.get("OMNIGRAPH_ORACLE_SEED", "1"))
GRAPHS = max(1, min(20, QUERIES // 50))
TWIN = "twin"
REJECTED_MAX = 0.2  # of the generated queries may fail to type-check, or the generator is useless


def _model(graph: Graph) -> Model:
    snapshot = graph.snapshot()
    tables = graph._repository.tables
    entities = {key: _stored(tables.open(pin.ref).scan()) for key, pin in snapshot.pins.items()}
    return Model(graph.schema(), entities)


def _stored(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with dates and instants as the numbers they are stored as."""
    for at, field in enumerate(table.schema):
        if pa.types.is_date(field.type):
            number = pa.int32() if field.type == pa.date32() else pa.int64()
            table = table.set_column(at, field.name, table[field.name].cast(number))
    return list(table.to_pylist())


def _text(head: str, clauses: list[str], tail: str) -> str:
    return f"query q({head}) {{ match {{ {'  '.join(clauses)} }} {tail} }}"


def _rows(graph: Graph, text: str, params: dict[str, Any], access: Access) -> list[list[Any]]:
    branch = TWIN if TWIN in graph.branches() else None
    result = graph.query(text, params=params, branch=branch, options=ReadOptions(access=access))
    return [list(row.values()) for row in result.rows()]


@pytest.mark.parametrize("number", range(GRAPHS))
def test_the_engine_agrees_with_brute_force(tmp_path: Path, number: int) -> None:
    rng = Random(f"{SEED}/{number}")
    shape = random_shape(rng)
    graph = make_graph(tmp_path / "g", shape.text(), random_records(rng, shape))
    if number % 2:
        graph.build_indexes()  # no answer depends on them
    if number % 3 == 0:
        graph.create_branch(TWIN)  # a branch without writes reads like its source
    model = _model(graph)
    done, tried = 0, 0
    while done < QUERIES // GRAPHS:
        tried += 1
        done += _compare(graph, model, shape, Random(f"{SEED}/{number}/{tried}"))
    assert tried - done <= REJECTED_MAX * tried


def _compare(graph: Graph, model: Model, shape: Shape, rng: Random) -> bool:
    """Whether the query type-checked; fails when an answer is wrong."""
    head, clauses, tail, params = random_query(rng, shape)
    text = _text(head, clauses, tail)
    try:
        plan = compile_query(text, model.schema).plan
    except SourceError:
        return False
    assert isinstance(plan, ReadPlan)
    bound = bind_parameters(plan.parameters, params)
    expected = Oracle(model, plan, bound.values).rows()
    found = {access: _rows(graph, text, params, access) for access in ("cache", "probe")}
    note = f"\n{text}\n{params}\nexpected {expected}\nfound    {found['cache']}"
    assert found["cache"] == found["probe"], note
    if plan.order or plan.ranking is not None:
        assert found["cache"] == expected, note
    else:
        assert same_rows(found["cache"], expected), note
    rng.shuffle(clauses)
    again = _rows(graph, _text(head, clauses, tail), params, "cache")
    assert again == found["cache"], f"{note}\nshuffled {clauses}"
    _check_limit(graph, text, params, plan, found["cache"])
    return True


def _check_limit(
    graph: Graph, text: str, params: dict[str, Any], plan: ReadPlan, rows: list[list[Any]]
) -> None:
    """A-4: a limit takes the first rows of the same order."""
    if plan.limit is None or plan.ranking is not None:
        return
    everything = _rows(graph, text.rpartition(" limit ")[0] + " }", params, "cache")
    assert rows == everything[: plan.limit]
