"""Plans for people and for programs: the explain printer.

Owns the wording of plans. Prints the order of ``steps``; an engine that chooses another order
prints its own steps with the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from omnigraph.lang.query.checked import CheckedAssignment, ResultColumn, SortKey
from omnigraph.lang.query.plan.logical import (
    DeleteEntities,
    Expand,
    GroupBy,
    InsertEdge,
    InsertNode,
    PatternVariable,
    Plan,
    ReadPlan,
    Statement,
    UpdateEntities,
    WritePlan,
)
from omnigraph.lang.query.plan.steps import (
    Connected,
    Follow,
    Intersect,
    Scan,
    Step,
    Where,
    Without,
    steps_of,
)
from omnigraph.lang.query.typed_expressions import Expression, ParameterValue, to_text

_INDENT: Final = "  "
_WORD_WIDTH: Final = 10


def explain(plan: Plan) -> str:
    """The plan as readable text, one step to a line."""
    parameters = ", ".join(f"${item.name}: {item.type}" for item in plan.parameters)
    lines = [f"query {plan.query}({parameters})"]
    if isinstance(plan, WritePlan):
        lines += [_line(*_statement(item)) for item in plan.statements]
    else:
        lines += _step_lines(steps_of(plan.pattern), 1)
        lines += [_line(word, text) for word, text in _tail(plan)]
    return "\n".join(lines)


def explain_json(plan: Plan) -> dict[str, Any]:
    """The plan as data."""
    body: dict[str, Any] = {
        "query": plan.query,
        "kind": "mutation" if isinstance(plan, WritePlan) else "read",
        "parameters": [{"name": item.name, "type": str(item.type)} for item in plan.parameters],
    }
    if isinstance(plan, WritePlan):
        body["statements"] = [_statement_json(item) for item in plan.statements]
        return body
    body["steps"] = [_step_json(item) for item in steps_of(plan.pattern)]
    if isinstance(plan.output, GroupBy):
        body["group_by"] = _texts(item.expression for item in plan.output.keys)
    body["columns"] = [_column_json(item) for item in plan.columns]
    body["rank_by"] = None if plan.ranking is None else to_text(plan.ranking)
    body["order_by"] = [
        {
            "expression": to_text(item.expression),
            "descending": item.descending,
            "nulls": "last" if item.nulls_last else "first",
        }
        for item in plan.order
    ]
    body["tie_break"] = list(plan.tie_break)
    body["limit"] = _row_count(plan.limit_parameter, plan.limit)
    body["offset"] = _row_count(plan.offset_parameter, plan.offset)
    return body


def describe_step(step: Step) -> str:
    """One step in one line, without the steps inside a negation."""
    return next(_step_lines((step,), 0))


def describe_answer(plan: ReadPlan) -> list[str]:
    """What becomes of the matches: groups, order, limit and columns, one line each."""
    return [_line(word, text, 0) for word, text in _tail(plan)]


# Text


def _line(word: str, text: str, depth: int = 1) -> str:
    return f"{_INDENT * depth}{word:<{_WORD_WIDTH}}{text}".rstrip()


def _step_lines(steps: Iterable[Step], depth: int) -> Iterator[str]:
    for step in steps:
        match step:
            case Scan():
                text = f"{_shown(step.variable)}{_where([step.variable])}"
                yield _line("scan", text, depth)
            case Follow():
                tested = [item for item in (step.edge, step.found) if item is not None]
                text = f"{_arrow(step.expand)} finds {_shown(step.found)}{_where(tested)}"
                yield _line("expand", text, depth)
            case Connected():
                tested = [step.edge] if step.edge is not None else []
                yield _line("connected", f"{_arrow(step.expand)}{_where(tested)}", depth)
            case Intersect():
                parts = [_arrow(item) for item in step.expands]
                parts += [f"not {_arrow(item)}" for item in step.absent]
                parts += [f"different from {_name(item)}" for item in step.different]
                text = f"{', '.join(parts)} finds {_shown(step.found)}{_where([step.found])}"
                yield _line("intersect", text, depth)
            case Where():
                yield _line("filter", to_text(step.condition), depth)
            case Without():
                shared = ", ".join(f"${name}" for name in step.anti_join.outer)
                yield _line("not", f"for {shared}:", depth)
                yield from _step_lines(step.steps, depth + 1)


def _shown(variable: PatternVariable) -> str:
    return f"{_name(variable.name)}: {variable.type}"


def _name(name: str) -> str:
    return "$_" if name.startswith("#") else f"${name}"


def _where(tested: Iterable[PatternVariable]) -> str:
    conditions = [to_text(part) for item in tested for part in item.predicates]
    return f" where {' and '.join(conditions)}" if conditions else ""


def _arrow(expand: Expand) -> str:
    name = "" if expand.edge_variable is None else f"${expand.edge_variable}:"
    hops = ""
    if expand.is_impossible:
        hops = " never"
    elif expand.max_hops > 1:
        hops = f" {expand.min_hops}..{expand.max_hops}"
    tail = "-" if expand.undirected else "->"
    return f"{_name(expand.source)} -[{name}{expand.edge}{hops}]{tail} {_name(expand.target)}"


def _tail(plan: ReadPlan) -> Iterator[tuple[str, str]]:
    if isinstance(plan.output, GroupBy):
        yield "group by", ", ".join(_texts(item.expression for item in plan.output.keys)) or "all"
    if plan.ranking is not None:
        yield "rank by", to_text(plan.ranking)
    order = [_sort_key(item) for item in plan.order]
    ties = [f"id of ${name}" for name in plan.tie_break]
    if order or ties:
        yield "order by", ", ".join([*order, *ties])
    limit = _row_count(plan.limit_parameter, plan.limit)
    offset = _row_count(plan.offset_parameter, plan.offset)
    if limit is not None:
        yield "limit", f"{limit}"
    if offset:
        yield "offset", f"{offset}"
    yield "return", ", ".join(_column(item) for item in plan.columns)


def _row_count(parameter: ParameterValue | None, known: int | None) -> int | str | None:
    return known if parameter is None else to_text(parameter)


def _sort_key(key: SortKey) -> str:
    text = f"{to_text(key.expression)} {'desc' if key.descending else 'asc'}"
    if key.nulls_last == key.descending:
        return text
    return f"{text} nulls {'last' if key.nulls_last else 'first'}"


def _column(column: ResultColumn) -> str:
    return f"{to_text(column.expression)} as {column.name}"


def _statement(statement: Statement) -> tuple[str, str]:
    match statement:
        case InsertNode():
            word = "upsert" if statement.upsert else "insert"
            return word, f"{statement.type} {_assigned(statement.values)}"
        case InsertEdge():
            ends = f"from {to_text(statement.source)} to {to_text(statement.target)}"
            return "insert", f"{statement.type} {ends} {_assigned(statement.values)}".rstrip()
        case UpdateEntities():
            values = _assigned(statement.values)
            return "update", f"{statement.type} {values} where {to_text(statement.where)}"
        case DeleteEntities():
            cascade = ", ".join(str(item) for item in statement.cascade)
            tail = f", with edges of {cascade}" if cascade else ""
            return "delete", f"{statement.type} where {to_text(statement.where)}{tail}"


def _assigned(values: Iterable[CheckedAssignment]) -> str:
    shown = [f"{item.property.property}: {to_text(item.value)}" for item in values]
    return "{ " + ", ".join(shown) + " }" if shown else ""


def _texts(expressions: Iterable[Expression]) -> list[str]:
    return [to_text(item) for item in expressions]


# Data


def _step_json(step: Step) -> dict[str, Any]:
    match step:
        case Scan():
            return {"step": step.kind, **_variable_json(step.variable)}
        case Follow():
            found = _variable_json(step.found)
            return {"step": step.kind, **_expand_json(step.expand, step.edge), "finds": found}
        case Connected():
            return {"step": step.kind, **_expand_json(step.expand, step.edge)}
        case Intersect():
            return {
                "step": step.kind,
                "edges": [_expand_json(item, None) for item in step.expands],
                "absent": [_expand_json(item, None) for item in step.absent],
                "different": list(step.different),
                "finds": _variable_json(step.found),
            }
        case Where():
            return {"step": step.kind, "condition": to_text(step.condition)}
        case Without():
            inner = [_step_json(item) for item in step.steps]
            return {"step": step.kind, "shares": list(step.anti_join.outer), "steps": inner}


def _variable_json(variable: PatternVariable) -> dict[str, Any]:
    return {
        "variable": variable.name,
        "type": variable.type.key,
        "where": _texts(variable.predicates),
    }


def _expand_json(expand: Expand, edge: PatternVariable | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "edge": expand.edge.name,
        "source": expand.source,
        "target": expand.target,
        "undirected": expand.undirected,
        "hops": [expand.min_hops, expand.max_hops],
    }
    if edge is not None:
        body["edge_variable"] = edge.name
        body["edge_where"] = _texts(edge.predicates)
    return body


def _column_json(column: ResultColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "expression": to_text(column.expression),
        "type": str(column.type),
    }


def _statement_json(statement: Statement) -> dict[str, Any]:
    word, _ = _statement(statement)
    body: dict[str, Any] = {"statement": word, "type": statement.type.key}
    if isinstance(statement, InsertEdge):
        body |= {"from": to_text(statement.source), "to": to_text(statement.target)}
    if isinstance(statement, (InsertNode, InsertEdge, UpdateEntities)):
        body["set"] = {item.property.property: to_text(item.value) for item in statement.values}
    if isinstance(statement, (UpdateEntities, DeleteEntities)):
        body["where"] = to_text(statement.where)
    if isinstance(statement, DeleteEntities) and statement.cascade:
        body["cascade"] = [item.key for item in statement.cascade]
    return body
