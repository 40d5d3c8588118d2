"""A brute-force evaluator: what a plan means, with no thought for time.

Works on plain dictionaries. Every combination of nodes is tried, reachability is the textbook
search, and nothing is shared with the engine but the plan, the types and the stemmer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from omnigraph.engine.search.analyze import terms_of
from omnigraph.lang.query.checked import SortKey
from omnigraph.lang.query.plan.logical import Expand, GroupBy, Pattern, ReadPlan
from omnigraph.lang.query.typed_expressions import (
    Aggregate,
    Bm25,
    Calculation,
    Compare,
    Complement,
    Conditional,
    Constant,
    CurrentTime,
    Expression,
    FunctionCall,
    Fusion,
    Junction,
    ListOf,
    Nearest,
    NullCheck,
    NullValue,
    Opposite,
    ParameterValue,
    PropertyOf,
    TextMatch,
    WholeEntity,
    children,
    variables,
)
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.floats import round_single
from omnigraph.model.types import PropertyType
from tests.engine.oracle_values import value_of

Entity = dict[str, Any]
Row = dict[str, Entity]


@dataclass
class Model:
    """A graph as lists of entities, by type key."""

    schema: AcceptedSchema
    entities: dict[str, list[Entity]]

    def node(self, type_name: str, id: str) -> Entity:
        return next(item for item in self.entities[f"node:{type_name}"] if item["id"] == id)


@dataclass
class Oracle:
    model: Model
    plan: ReadPlan
    parameters: Mapping[str, Any]
    now_ms: int = 0
    restricted: dict[str, set[str]] = field(default_factory=dict)
    fused: dict[str, float] = field(default_factory=dict)

    def rows(self) -> list[list[Any]]:
        """The answer; in order if the plan has one."""
        if isinstance(self.plan.output, GroupBy):
            rows = self._ordered_groups(self._group(list(self._matches())))
        else:
            rows = self._project()
        return rows[self.plan.offset : self.plan.rows_max]

    # Matching

    def _matches(self) -> Iterator[Row]:
        return self._extend(self.plan.pattern, {})

    def _extend(self, pattern: Pattern, outer: Row) -> Iterator[Row]:
        nodes = [item for item in pattern.variables if item.type.kind == "node"]
        domains = [
            [
                entity
                for entity in self.model.entities[item.type.key]
                if all(self._holds(c, {**outer, item.name: entity}) for c in item.predicates)
                and entity["id"] in self.restricted.get(item.name, {entity["id"]})
            ]
            for item in nodes
        ]
        for chosen in itertools.product(*domains):
            row = {**outer, **{item.name: e for item, e in zip(nodes, chosen, strict=True)}}
            yield from self._with_edges(pattern, row, pattern.expands)

    def _with_edges(self, pattern: Pattern, row: Row, expands: tuple[Expand, ...]) -> Iterator[Row]:
        if not expands:
            if all(self._holds(item, row) for item in pattern.filters) and not any(
                any(True for _ in self._extend(item.pattern, row)) for item in pattern.anti_joins
            ):
                yield row
            return
        first, rest = expands[0], expands[1:]
        source, target = row[first.source], row[first.target]
        if first.edge_variable is None:
            if target["id"] in self._reached(first, source["id"]):
                yield from self._with_edges(pattern, row, rest)
            return
        variable = pattern.variable(first.edge_variable)
        for edge in self.model.entities[first.edge.key]:
            for _ in range(_orientations(first, edge, source["id"], target["id"])):
                extended = {**row, first.edge_variable: edge}
                if all(self._holds(item, extended) for item in variable.predicates):
                    yield from self._with_edges(pattern, extended, rest)

    def _reached(self, expand: Expand, source: str) -> set[str]:
        edges = [(e["src"], e["dst"]) for e in self.model.entities[expand.edge.key]]
        if expand.undirected:
            edges += [(b, a) for a, b in edges]
        kind = self.model.schema.edges[expand.edge.name]
        if kind.source != kind.target:
            steps = expand.min_hops <= 1 <= expand.max_hops
            return {b for a, b in edges if a == source} if steps else set()
        visited, frontier, emitted = {source}, [source], set()
        for hop in range(1, expand.max_hops + 1):
            following = []
            for node in frontier:
                for a, b in edges:
                    if a != node:
                        continue
                    if b == node:
                        if hop >= expand.min_hops:
                            emitted.add(b)
                    elif b not in visited:
                        visited.add(b)
                        following.append(b)
                        if hop >= expand.min_hops:
                            emitted.add(b)
            frontier = following
        return emitted

    # Expressions

    def _holds(self, condition: Expression, row: Row) -> bool:
        return self._value(condition, row) is True

    def _compared(self, condition: Compare, row: Row) -> bool | None:
        left, right = self._value(condition.left, row), self._value(condition.right, row)
        if left is None or right is None:
            return None
        if condition.operator == "contains":
            return right in left
        if condition.operator == "starts_with":
            return bool(left.startswith(right))
        left, right = _comparable(condition.left, left, condition.right, right)
        return {
            "=": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[condition.operator]

    def _junction(self, condition: Junction, row: Row) -> bool | None:
        values = [self._value(item, row) for item in condition.operands]
        decisive = condition.operator == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive

    def _value(self, expression: Expression, row: Row) -> Any:
        match expression:
            case Constant():
                return expression.value
            case NullValue():
                return None
            case ParameterValue():
                return self.parameters[expression.name]
            case CurrentTime():
                return self.now_ms
            case PropertyOf():
                return row[expression.variable][expression.property]
            case WholeEntity():
                return row[expression.variable]
            case Compare():
                return self._compared(expression, row)
            case TextMatch():
                found = self._text_match(expression, row)
                return None if found is None else found != expression.negated
            case Junction():
                return self._junction(expression, row)
            case Complement():
                value = self._value(expression.operand, row)
                return None if value is None else not value
            case NullCheck():
                return (self._value(expression.operand, row) is None) != expression.negated
            case Calculation() | Opposite() | FunctionCall() | ListOf():
                values = [self._value(item, row) for item in children(expression)]
                return value_of(expression, values)
            case Conditional():
                for branch in expression.branches:
                    if self._value(branch.condition, row) is True:
                        return self._value(branch.result, row)
                return self._value(expression.otherwise, row)
            case Nearest():
                return self._distance(expression, row[expression.field.variable])
            case Bm25():
                return self._score(expression, row[expression.field.variable])
            case Fusion():
                return self.fused.get(row[expression.first.field.variable]["id"])
            case _:
                raise AssertionError(expression)

    # Search

    def _stems(self, entity: Entity, name: str) -> list[str]:
        return [] if entity[name] is None else [term.stem for term in terms_of(entity[name])]

    def _text_match(self, search: TextMatch, row: Row) -> bool | None:
        text, query = (
            row[search.field.variable][search.field.property],
            self._value(search.query, {}),
        )
        if text is None or query is None:
            return None
        held, wanted = terms_of(text), terms_of(query)
        if search.function == "search":
            return bool({term.stem for term in held} & {term.stem for term in wanted})
        if search.function == "match_text":
            places = {(term.place, term.stem) for term in held}
            return any(
                all((start.place + t.place - wanted[0].place, t.stem) in places for t in wanted)
                for start in (held if wanted else [])
            )
        most = 2 if search.max_edits is None else self._value(search.max_edits, {})
        return any(edits_between(a.word, b.word) <= most for a in held for b in wanted)

    def _entities(self, variable: str) -> list[Entity]:
        return self.model.entities[self.plan.pattern.variable(variable).type.key]

    def _score(self, ranking: Bm25, entity: Entity) -> float | None:
        query = self._value(ranking.query, {})
        name = ranking.field.property
        if query is None:
            return None
        texts = [e for e in self._entities(ranking.field.variable) if e[name] is not None]
        lengths = [len(self._stems(item, name)) for item in texts]
        mine, total = self._stems(entity, name), 0.0
        for stem in sorted({term.stem for term in terms_of(query)} & set(mine)):
            holding = sum(stem in self._stems(item, name) for item in texts)
            weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            scale = 1.2 * (0.25 + 0.75 * len(mine) / (sum(lengths) / len(lengths)))
            count = mine.count(stem)
            total += weight * count * 2.2 / (count + scale)
        return total or None

    def _distance(self, ranking: Nearest, entity: Entity) -> float | None:
        vector, query = entity[ranking.field.property], self._value(ranking.query, {})
        if vector is None or query is None:
            return None
        return sum((a - b) ** 2 for a, b in zip(vector, query, strict=True))

    def _ranked(self, ranking: Nearest | Bm25) -> list[Row]:
        """The matches of one ranking, in its order."""
        variable = self.plan.pattern.variable(ranking.field.variable)
        name = variable.name
        candidates = [
            entity
            for entity in self.model.entities[variable.type.key]
            if all(self._holds(item, {name: entity}) for item in variable.predicates)
            and self._value(ranking, {name: entity}) is not None
        ]
        sign = 1 if isinstance(ranking, Nearest) else -1

        def key(entity: Entity) -> Any:
            return round(sign * self._value(ranking, {name: entity}), 9), entity["id"].encode()

        candidates.sort(key=key)
        if isinstance(ranking, Nearest):
            candidates = candidates[: self.plan.rows_max]
        self.restricted = {name: {entity["id"] for entity in candidates}}
        rows = list(self._matches())
        self.restricted = {}
        ids = self.plan.tie_break
        rows.sort(key=lambda row: (key(row[name])[0], *(row[v]["id"].encode() for v in ids)))
        return rows

    # Answers

    def _project(self) -> list[list[Any]]:
        ranking = self.plan.ranking
        if isinstance(ranking, Fusion):
            rows = self._fuse(ranking)
        elif ranking is not None:
            rows = self._ranked(ranking)
        else:
            rows = list(self._matches())
            if self.plan.order:
                rows.sort(key=self._ids)
        if ranking is None:
            for item in reversed(self.plan.order):
                sort_rows(rows, item, lambda row, item=item: self._value(item.expression, row))
        columns = self.plan.columns
        return [[self._shown(c.expression, row) for c in columns] for row in rows]

    def _ids(self, row: Row) -> Any:
        return tuple(row[name]["id"].encode() for name in self.plan.tie_break)

    def _fuse(self, ranking: Fusion) -> list[Row]:
        k = self._value(ranking.k, {})
        name = ranking.first.field.variable
        arms = [self._ranked(arm) for arm in (ranking.first, ranking.second)]
        orders = [list(dict.fromkeys(row[name]["id"] for row in arm)) for arm in arms]
        self.fused = {}
        for order in orders:
            for rank, id in enumerate(order):
                self.fused[id] = self.fused.get(id, 0.0) + 1 / (k + rank + 1)
        seen = list(dict.fromkeys([*orders[0], *orders[1]]))
        best = sorted(seen, key=lambda id: -self.fused[id])[: self.plan.rows_max]
        rows: list[Row] = []
        for id in best:
            arm = arms[0] if id in orders[0] else arms[1]
            rows += sorted((row for row in arm if row[name]["id"] == id), key=self._ids)
        return rows

    def _shown(self, expression: Expression, row: Row) -> Any:
        value = self._value(expression, row)
        if isinstance(expression, WholeEntity):
            return self._object(expression, value)
        kind = expression.type
        assert isinstance(kind, PropertyType)
        return kind.produce(value)

    def _object(self, expression: WholeEntity, entity: Entity) -> dict[str, Any]:
        columns = self.model.schema.type(expression.type.key).columns()
        return {c.name: c.type.produce(entity[c.name]) for c in columns if not c.type.is_blob}

    # Groups

    def _group(self, rows: list[Row]) -> list[tuple[list[Any], Row | None, dict[Any, Any]]]:
        output = self.plan.output
        assert isinstance(output, GroupBy)
        groups: dict[Any, list[Row]] = {} if output.keys else {(): []}
        for row in rows:
            key = tuple(repr(self._shown(c.expression, row)) for c in output.keys)
            groups.setdefault(key, []).append(row)
        found = []
        for members in groups.values():
            totals = {item: self._aggregate(item, members) for item in output.aggregates}
            shown = [
                c.expression.type.produce(totals[c.expression])  # type: ignore[union-attr]
                if c.expression in totals
                else self._shown(c.expression, members[0])
                for c in output.columns
            ]
            found.append((shown, members[0] if members else None, totals))
        return found

    def _tie(self, expression: Expression, row: Row | None) -> Any:
        if row is None or isinstance(expression, (Constant, ParameterValue, CurrentTime)):
            return (0,)
        value = self._value(expression, row)
        if isinstance(expression, WholeEntity):
            value = value["id"]
        if isinstance(value, list):
            return (1, [_sortable(item) for item in value])
        return _sortable(value)

    def _aggregate(self, expression: Expression, rows: list[Row]) -> Any:
        assert isinstance(expression, Aggregate)
        values = [self._value(expression.argument, row) for row in rows]
        values = [value for value in values if value is not None]
        if expression.function == "count":
            return len(values)
        if expression.function == "count_distinct":
            return len({repr(value) for value in values})
        if not values:
            return None
        if expression.function in ("min", "max"):
            choose = min if expression.function == "min" else max
            return choose(values, key=_sortable)
        total = math.fsum(values) if isinstance(values[0], float) else sum(values)
        return float(total) if expression.function == "sum" else total / len(values)

    def _ordered_groups(
        self, groups: list[tuple[list[Any], Row | None, dict[Any, Any]]]
    ) -> list[list[Any]]:
        output = self.plan.output
        assert isinstance(output, GroupBy)
        if self.plan.order:  # groups that it leaves equal come in the order of their keys
            groups.sort(key=lambda group: [self._tie(c.expression, group[1]) for c in output.keys])
        for item in reversed(self.plan.order):

            def value(group: Any, item: Any = item) -> Any:
                _, row, totals = group
                if item.expression in totals:
                    return totals[item.expression]
                return self._value(item.expression, row)

            sort_rows(groups, item, value)
        return [shown for shown, _, _ in groups]


def _orientations(expand: Expand, edge: Entity, source: str, target: str) -> int:
    forward = (edge["src"], edge["dst"]) == (source, target)
    backward = expand.undirected and (edge["src"], edge["dst"]) == (target, source)
    return int(forward or backward) if source == target else int(forward) + int(backward)


def sort_rows(rows: list[Any], key: SortKey, value: Callable[[Any], Any]) -> None:
    """Sort by one key, stably; nulls where the key says."""
    rows.sort(key=lambda row: _sortable(value(row)), reverse=key.descending)
    rows.sort(key=lambda row: (value(row) is None) == key.nulls_last)


def _sortable(value: Any) -> Any:
    if value is None:
        return (0,)
    return (1, value.encode() if isinstance(value, str) else value)


def _comparable(
    left_expression: Expression, left: Any, right_expression: Expression, right: Any
) -> tuple[Any, Any]:
    if isinstance(left, str):
        return left.encode(), right.encode()
    sides = [(left_expression, left), (right_expression, right)]
    properties = [bool(variables(item)) for item, _ in sides]
    if all(properties):
        if isinstance(left, float) != isinstance(right, float):
            return float(left), float(right)
        return left, right
    for at in (0, 1):
        kind = sides[at][0].type
        if properties[at] and isinstance(kind, PropertyType) and kind.scalar.name == "F32":
            return round_single(float(left)), round_single(float(right))
    return left, right


@cache
def edits_between(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    if first[0] == second[0]:
        return edits_between(first[1:], second[1:])
    return 1 + min(
        edits_between(first[1:], second),
        edits_between(first, second[1:]),
        edits_between(first[1:], second[1:]),
    )


def same_rows(first: Iterable[list[Any]], second: Iterable[list[Any]]) -> bool:
    """Whether two bags of rows are equal."""
    return sorted(map(repr, first)) == sorted(map(repr, second))
