"""Constraints on single entities: required values, ranges, patterns, enum members.

Each is one Arrow expression over a column whose type ``coerce_column`` has already enforced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.canonical import shown_value
from omnigraph.constraints.violations import Report, Rule, Violation
from omnigraph.lang.query.parse.ast import ComparisonOperator
from omnigraph.lang.schema import Check, EdgeType, NodeType, Property, Range
from omnigraph.predicates.condition import Condition

_BOUNDS: Final[tuple[ComparisonOperator, ComparisonOperator]] = (">=", "<=")
_Finding = tuple[Rule, str, Any, str]  # rule, property, mask of offenders, what is wrong


def check_required(
    owner: NodeType | EdgeType,
    rows: pa.Table,
    report: Report,
    only: Collection[str] | None = None,
) -> None:
    """Every property without ``?`` has a value; ``only`` names those that are written."""
    for name, declared in owner.properties.items():
        if only is not None and name not in only:
            continue
        column = rows[name]
        if not declared.type.nullable and column.null_count:
            mask = pc.is_null(column)
            report_rows(report, owner, rows, "required", name, mask, "a value is required")


def check_values(owner: NodeType | EdgeType, rows: pa.Table, report: Report) -> None:
    """``@range``, then ``@check``, then enums."""
    for rule, name, mask, problem in _findings(owner, rows):
        report_rows(report, owner, rows, rule, name, mask, problem)


def _findings(owner: NodeType | EdgeType, rows: pa.Table) -> Iterator[_Finding]:
    for bounds in getattr(owner, "ranges", ()):
        yield _range(bounds, owner.properties[bounds.property], rows)
    for check in getattr(owner, "checks", ()):
        yield _check(check, rows)
    for declared in owner.properties.values():
        if declared.type.enum is not None:
            yield _enum(declared, rows)


def _range(bounds: Range, declared: Property, rows: pa.Table) -> _Finding:
    """Values compare with the bounds as in a query; NaN and infinity violate every range."""
    column = rows[bounds.property]
    inside = pc.is_finite(column)
    for operator, bound in zip(_BOUNDS, (bounds.low, bounds.high), strict=True):
        if bound is not None:
            condition = Condition(bounds.property, declared.type, operator, bound)
            inside = pc.and_(inside, pa.array(condition.mask(rows)))
    shown = f"{_number(bounds.low)}..{_number(bounds.high)}"
    return "range", bounds.property, pc.invert(inside), f"outside @range {shown}"


def _check(check: Check, rows: pa.Table) -> _Finding:
    found = pc.match_substring_regex(rows[check.property], check.pattern)
    return "check", check.property, pc.invert(found), f"not matched by @check {check.pattern!r}"


def _enum(declared: Property, rows: pa.Table) -> _Finding:
    members = pa.array(declared.type.enum, type=pa.string())
    column = rows[declared.name]
    outside = pc.and_(pc.is_valid(column), pc.invert(pc.is_in(column, value_set=members)))
    return "enum", declared.name, outside, f"not one of {', '.join(declared.type.enum or ())}"


def report_rows(
    report: Report,
    owner: NodeType | EdgeType,
    rows: pa.Table,
    rule: Rule,
    name: str,
    mask: Any,
    problem: str,
) -> None:
    """Report the rows that a mask selects; null selects nothing."""
    total = pc.sum(mask).as_py() or 0
    if not total:
        return
    marked = pc.indices_nonzero(pc.fill_null(mask, False))[: report.room()].to_pylist()
    violations = []
    for at in marked:
        id = rows["id"][at].as_py()
        value = shown_value(owner, rows, name, at)
        shown = f"{value} is {problem}" if value else problem
        message = f"{owner.name}.{name}{_of(id)}: {shown}"
        violations.append(Violation(rule, message, owner.key, id, name, *report.place(rows, at)))
    report.extend(violations, total)


def _of(id: str | None) -> str:
    return "" if id is None else f" of {id!r}"


def _number(bound: float | None) -> str:
    return "" if bound is None else f"{bound:g}"
