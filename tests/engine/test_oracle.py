"""Random graphs and queries: the engine against brute force, on every access path, and the
relational part of it against DuckDB.

``OMNIGRAPH_ORACLE_QUERIES`` asks for more than the usual number; ``OMNIGRAPH_ORACLE_SEED`` for
others.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.engine import ReadOptions
from omnigraph.engine.exec import evaluator
from omnigraph.engine.plan.access_choice import Access
from omnigraph.errors import CalculationFailed
from omnigraph.lang.query import bind_parameters, compile_query
from omnigraph.lang.query.plan.logical import ReadPlan
from omnigraph.lang.syntax import SourceError
from omnigraph.predicates import values
from tests.engine.generate import Shape, random_query, random_records, random_shape
from tests.engine.graphs import make_graph, use_large_joins, use_small_blocks
from tests.engine.oracle import Model, Oracle, same_rows
from tests.engine.sql_oracle import NotRelational, SqlOracle, close_rows, sql_database
from tests.support.internals import repository_of

QUERIES = int(os.environ.get("OMNIGRAPH_ORACLE_QUERIES", "1000"))
SEED = int(os.environ.get("OMNIGRAPH_ORACLE_SEED", "1"))
GRAPHS = max(1, QUERIES // 50)
TWIN = "twin"
RELATIONAL_MIN = 0.05  # of the queries on any graph have to be within what SQL can say
CYCLIC_MIN = 0.2  # of the queries on a graph have to close a cycle; on most graphs more do
REJECTED_MAX = 0.2  # of the generated queries may fail to type-check, or the generator is useless


def _model(graph: Graph) -> Model:
    return Model(graph.schema(), {key: t.to_pylist() for key, t in _tables(graph).items()})


def _tables(graph: Graph) -> dict[str, pa.Table]:
    tables = repository_of(graph).tables
    return {key: _stored(tables.open(pin.ref).scan()) for key, pin in graph.snapshot().pins.items()}


def _stored(table: pa.Table) -> pa.Table:
    """Rows with dates and instants as the numbers they are stored as."""
    for at, field in enumerate(table.schema):
        if pa.types.is_date(field.type):
            number = pa.int32() if field.type == pa.date32() else pa.int64()
            table = table.set_column(at, field.name, table[field.name].cast(number))
    return table


def _text(head: str, clauses: list[str], tail: str) -> str:
    return f"query q({head}) {{ match {{ {'  '.join(clauses)} }} {tail} }}"


def _rows(graph: Graph, text: str, params: dict[str, Any], access: Access) -> list[list[Any]]:
    branch = TWIN if TWIN in graph.branches.list() else None
    result = graph.query(text, params=params, branch=branch, options=ReadOptions(access=access))
    return [list(row.values()) for row in result.rows()]


@pytest.mark.parametrize("number", range(GRAPHS))
def test_the_engine_agrees_with_brute_force_and_with_sql(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"{SEED}/{number}")
    shape = random_shape(rng)
    as_large = number % 3 == 1
    graph = make_graph(
        tmp_path / "g",
        shape.text(),
        random_records(rng, shape, edges_max=25 if as_large else 10),
        indexed_early=number % 4 == 3,  # stale indexes
    )
    if number % 2:
        graph.maintenance.build_indexes()  # no answer depends on them
    if number % 3 == 0:
        graph.branches.create(TWIN)  # a branch without writes reads like its source
    if number % 4 < 2:
        monkeypatch.setattr(values, "DICTIONARY_ROWS_MIN", 0)  # both ways to hold few strings
    if as_large:
        use_small_blocks(monkeypatch, rows=1)  # small frames take the ways of large ones
        monkeypatch.setattr(evaluator, "WHOLE_ROWS", 1)
    model, database = _model(graph), sql_database(_tables(graph))
    if number % 3 == 2:
        use_large_joins(monkeypatch)
    done, tried, relational, cyclic = 0, 0, 0, 0
    while done < QUERIES // GRAPHS:
        tried += 1
        plan = _compare(graph, model, shape, Random(f"{SEED}/{number}/{tried}"))
        if plan is not None:
            done += 1
            relational += _compare_with_sql(graph, database, *plan)
            cyclic += _is_cyclic(plan[1])
    assert tried - done <= REJECTED_MAX * tried
    assert relational >= RELATIONAL_MIN * done
    assert cyclic >= CYCLIC_MIN * done


def _is_cyclic(plan: ReadPlan) -> bool:
    """Whether the edges of a pattern are more than a forest needs."""
    part = {item.name: item.name for item in plan.pattern.variables}

    def root(name: str) -> str:
        return name if part[name] == name else root(part[name])

    for expand in plan.pattern.expands:
        if root(expand.source) == root(expand.target):
            return True
        part[root(expand.source)] = root(expand.target)
    return False


def _compare(
    graph: Graph, model: Model, shape: Shape, rng: Random
) -> tuple[str, ReadPlan, dict[str, Any]] | None:
    """The query, None if it does not type-check; fails when an answer is wrong."""
    head, clauses, tail, params = random_query(rng, shape)
    text = _text(head, clauses, tail)
    try:
        plan = compile_query(text, model.schema).plan
    except SourceError:
        return None
    assert isinstance(plan, ReadPlan)
    bound = bind_parameters(plan.parameters, params)
    try:
        expected = Oracle(model, plan, bound.values).rows()
    except CalculationFailed:  # the engine may look at fewer rows, and then answers
        return None
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
    return text, plan, params


def _compare_with_sql(
    graph: Graph, database: Any, text: str, plan: ReadPlan, params: dict[str, Any]
) -> bool:
    """Whether DuckDB could be asked; fails when it disagrees."""
    oracle = SqlOracle(plan, bind_parameters(plan.parameters, params).values)
    try:
        expected = close_rows(oracle.rows(database, limited=bool(plan.order)))
    except NotRelational:
        return False
    options = ReadOptions(entity_form="id")
    found = close_rows(
        [list(row.values()) for row in graph.query(text, params=params, options=options).rows()]
    )
    note = f"\n{text}\n{params}\n{oracle.text(limited=True)}\nexpected {expected}\nfound {found}"
    if plan.order:
        assert found == expected, note
    elif plan.limit is None:
        assert sorted(found) == sorted(expected), note
    else:
        assert len(found) == min(plan.limit, max(0, len(expected) - plan.offset)), note
        assert not Counter(found) - Counter(expected), note
    return True


def _check_limit(
    graph: Graph, text: str, params: dict[str, Any], plan: ReadPlan, rows: list[list[Any]]
) -> None:
    """A-4: a limit takes the first rows of the same order."""
    if plan.limit is None or plan.ranking is not None:
        return
    everything = _rows(graph, text.rpartition(" limit ")[0] + " }", params, "cache")
    assert rows == everything[plan.offset : plan.rows_max]
