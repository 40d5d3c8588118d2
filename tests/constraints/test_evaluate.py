"""The constraint evaluator on images: order of violations, bounds, both ends of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.constraints import VIOLATIONS_SHOWN_MAX, Image, Report, TypeImage, evaluate
from omnigraph.constraints.image import last_per_id
from omnigraph.errors import ConstraintViolation, InvalidData, KeyConflict
from omnigraph.lang.schema import AcceptedSchema, accept_schema

SCHEMA = """
node A { k: String @key  n: I32?  @range(n, 1..5) }
node B { k: String @key }
edge E: A -> B @card(1..2)
edge D: A -> B
"""


@pytest.fixture(scope="module")
def schema() -> AcceptedSchema:
    numbers = iter(range(1_000))
    return accept_schema(SCHEMA, mint=lambda: f"i{next(numbers)}")


class Memory:
    """Stored types as tables in memory."""

    def __init__(self, **tables: pa.Table) -> None:
        self.tables = {name.replace("_", ":"): table for name, table in tables.items()}

    def count(self, key: str) -> int:
        return self.tables[key].num_rows if key in self.tables else 0

    def columns(self, key: str, columns: Sequence[str]) -> pa.Table:
        return self.tables[key].select(list(columns))

    def matching(self, key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        table = self.tables[key]
        return table.filter(pc.is_in(table[column], value_set=values)).select(list(columns))


def nodes(*ids: str, n: int | None = None) -> pa.Table:
    return pa.table({"id": ids, "k": ids, "n": pa.array([n] * len(ids), pa.int32())})


def edges(*rows: tuple[str, str, str]) -> pa.Table:
    names = ("id", "src", "dst")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def found(schema: AcceptedSchema, image: Image, stored: Memory, **options: Any) -> list[Any]:
    report = Report()
    evaluate(schema, image, stored, report, **options)
    assert report.total == len(report.shown)
    return [(v.rule, v.type_key, v.id) for v in report.shown]


def test_M_40_steps_come_in_order_and_types_by_key(schema: AcceptedSchema) -> None:
    image = {
        "node:B": TypeImage(nodes("x", "x"), last_wins=False),
        "node:A": TypeImage(nodes("a", "b", n=9)),
        "edge:E": TypeImage(edges(("e1", "a", "x"), ("e2", "a", "x"), ("e3", "a", "x"))),
        "edge:D": TypeImage(edges(("d1", "zz", "yy"))),
    }
    assert found(schema, image, Memory()) == [
        ("range", "node:A", "a"),
        ("range", "node:A", "b"),
        ("key", "node:B", "x"),
        ("endpoint", "edge:D", "d1"),
        ("endpoint", "edge:D", "d1"),
        ("cardinality", "edge:E", "a"),
    ]


def test_nodes_that_vanish_leave_no_edge_behind(schema: AcceptedSchema) -> None:
    stored = Memory(
        node_A=nodes("a", "b"), node_B=nodes("x"), edge_D=edges(("d1", "a", "x"), ("d2", "b", "x"))
    )
    gone = {"node:A": TypeImage(removed=pa.array(["a"]))}
    assert found(schema, gone, stored) == [("endpoint", "edge:D", "d1")]
    assert found(schema, gone, stored, cascaded=True) == []
    both = {**gone, "edge:D": TypeImage(removed=pa.array(["d1"]))}
    assert found(schema, both, stored) == []
    replaced = {"node:A": TypeImage(nodes("b"), replaces_all=True)}
    assert found(schema, replaced, stored) == [("endpoint", "edge:D", "d1")]
    moved = {**replaced, "edge:D": TypeImage(edges(("d1", "b", "x")))}
    assert found(schema, moved, stored) == []


def test_edges_to_nodes_that_vanish_in_the_same_write_are_refused(schema: AcceptedSchema) -> None:
    stored = Memory(node_A=nodes("a"), node_B=nodes("x"))
    image = {
        "node:B": TypeImage(removed=pa.array(["x"])),
        "edge:D": TypeImage(edges(("d1", "a", "x"))),
    }
    assert found(schema, image, stored) == [("endpoint", "edge:D", "d1")]


def test_a_node_that_is_removed_and_written_again_is_still_there(schema: AcceptedSchema) -> None:
    stored = Memory(node_A=nodes("a"), node_B=nodes("x"), edge_D=edges(("d1", "a", "x")))
    again = TypeImage(nodes("a"), removed=pa.array(["a"]))
    many = TypeImage(edges(*((f"e{i}", "a", "x") for i in range(3))))
    assert found(schema, {"node:A": again}, stored) == []
    assert found(schema, {"node:A": again, "edge:E": many}, stored) == [
        ("cardinality", "edge:E", "a")
    ]


def test_the_report_is_bounded_and_counts_everything(schema: AcceptedSchema) -> None:
    report = Report()
    many = [(f"d{i}", "a", "nowhere") for i in range(500)]
    image = {"edge:D": TypeImage(edges(*many)), "node:A": TypeImage(nodes("a", n=7))}
    evaluate(schema, image, Memory(), report)
    assert (len(report.shown), report.total) == (VIOLATIONS_SHOWN_MAX, 501)
    assert report.rules == {"range", "endpoint"}
    with pytest.raises(ConstraintViolation, match="and 500 more") as caught:
        report.raise_any()
    assert caught.value.total == 501


def test_rules_found_after_the_report_is_full_still_decide_its_class(
    schema: AcceptedSchema,
) -> None:
    report = Report()
    ids = [f"a{i}" for i in range(200)]
    stored = Memory(node_A=nodes(*ids))
    evaluate(schema, {"node:A": TypeImage(nodes(*ids), must_be_new=True)}, stored, report)
    with pytest.raises(KeyConflict, match="and 199 more"):
        report.raise_any()
    orphan = {"edge:D": TypeImage(edges(("d", "a0", "x")))}
    evaluate(schema, orphan, stored, report)
    with pytest.raises(ConstraintViolation):
        report.raise_any()


def test_rows_without_a_required_value_end_the_evaluation(schema: AcceptedSchema) -> None:
    report = Report()
    table = pa.table({"id": ["a", None], "k": ["a", None], "n": pa.array([1, 9], pa.int32())})
    evaluate(schema, {"node:A": TypeImage(table, last_wins=False)}, Memory(), report)
    assert [v.rule for v in report.shown] == ["required", "range"]
    with pytest.raises(InvalidData) as caught:
        report.raise_any()
    assert not isinstance(caught.value, ConstraintViolation)


def test_the_last_row_of_an_id_is_kept_in_place() -> None:
    rows = pa.table({"id": ["a", "b", "a", "c", "b"], "n": [1, 2, 3, 4, 5]})
    assert last_per_id(rows).to_pydict() == {"id": ["a", "c", "b"], "n": [3, 4, 5]}
