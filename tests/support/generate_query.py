"""Random queries that are valid for a given schema.

Owns the generator that property tests, fuzzers and engine oracles share. Every query it makes
compiles; the same seed makes the same queries. Clauses are kept apart, so that a caller can write
the same query with its clauses in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from omnigraph.lang.query.check.values import compatible, item_type
from omnigraph.lang.query.parse.expression import BOOLEANS
from omnigraph.lang.query.parse.words import RESERVED
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.types import SCALARS, PropertyType
from tests.support.generate_value import random_literal, random_value

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_NUMBERED = ("sum", "avg", "min", "max")
_STRING = PropertyType(SCALARS["String"])


@dataclass(frozen=True, slots=True)
class GeneratedNot:
    clauses: tuple[GeneratedClause, ...]


GeneratedClause: TypeAlias = str | GeneratedNot


@dataclass(frozen=True, slots=True)
class GeneratedQuery:
    """A query in parts. ``values`` are JSON values that bind to its parameters."""

    parameters: tuple[str, ...]
    clauses: tuple[GeneratedClause, ...]
    tail: str
    values: dict[str, Any]
    name: str = "generated"

    def text(self, shuffle: Random | None = None) -> str:
        """The query as text; with ``shuffle``, the clauses of each block in another order."""
        body = self.tail
        if self.clauses:
            body = f"match {_block(self.clauses, shuffle)} {self.tail}"
        return f"query {self.name}({', '.join(self.parameters)}) {{ {body} }}"


def _block(clauses: Sequence[GeneratedClause], shuffle: Random | None) -> str:
    shown = [
        item if isinstance(item, str) else f"not {_block(item.clauses, shuffle)}"
        for item in clauses
    ]
    if shuffle is not None:
        shuffle.shuffle(shown)
    return "{ " + "\n".join(shown) + " }"


class QueryGenerator:
    """Makes queries for one schema. All randomness comes from ``random``."""

    def __init__(self, schema: AcceptedSchema, random: Random) -> None:
        self._schema = schema
        self._random = random

    def read(self) -> GeneratedQuery:
        return _Read(self._schema, self._random).query()

    def mutation(self) -> GeneratedQuery:
        return _Mutation(self._schema, self._random).query()

    def query(self) -> GeneratedQuery:
        return self.mutation() if self._random.random() < 0.2 else self.read()


class _Draft:
    """What reads and mutations share: randomness and parameters."""

    def __init__(self, schema: AcceptedSchema, random: Random) -> None:
        self._schema = schema
        self._random = random
        self._parameters: list[str] = []
        self._values: dict[str, Any] = {}
        self._count = 0

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _operand(self, kind: PropertyType) -> str:
        """A literal or a parameter of a type."""
        if kind.is_blob or self._chance(0.4):
            return self._parameter(kind)
        return random_literal(kind, self._random)

    def _parameter(self, kind: PropertyType) -> str:
        name = f"p{len(self._parameters) + 1}"
        optional = self._chance(0.3)
        declared = "String" if kind.enum is not None else str(kind.required())
        self._parameters.append(f"${name}: {declared}{'?' if optional else ''}")
        is_null = optional and self._chance(0.5)
        self._values[name] = None if is_null else random_value(kind, self._random)
        return f"${name}"


@dataclass(frozen=True, slots=True)
class _Bound:
    name: str
    type: NodeType | EdgeType

    def properties(self) -> list[tuple[str, PropertyType]]:
        """What can be read of it, as expressions with their types."""
        return [
            (f"${self.name}.{name}", item.type)
            for name, item in self.type.properties.items()
            if not item.type.is_blob
        ]


class _Read(_Draft):
    def query(self) -> GeneratedQuery:
        bound: list[_Bound] = []
        clauses = [self._binding(bound) for _ in range(self._random.randint(1, 2))]
        clauses += self._more(bound, self._random.randint(0, 4), depth=0)
        tail = self._tail(bound)
        return GeneratedQuery(tuple(self._parameters), tuple(clauses), tail, self._values)

    # Match

    def _binding(self, bound: list[_Bound]) -> GeneratedClause:
        node = self._random.choice(list(self._schema.nodes.values()))
        variable = self._fresh(bound, node)
        return f"${variable.name}: {node.name}{self._inline(node)}"

    def _inline(self, node: NodeType) -> str:
        usable = [
            (name, item.type)
            for name, item in node.properties.items()
            if not item.type.is_blob and not item.type.is_vector
        ]
        chosen = self._random.sample(usable, k=min(len(usable), self._random.randint(0, 2)))
        pairs = [f"{name}: {self._operand(item_type(kind))}" for name, kind in chosen]
        return " { " + ", ".join(pairs) + " }" if pairs else ""

    def _fresh(self, bound: list[_Bound], kind: NodeType | EdgeType) -> _Bound:
        """A new variable. Its name is new in the whole query: blocks share one namespace."""
        self._count += 1
        bound.append(_Bound(f"v{self._count}", kind))
        return bound[-1]

    def _more(self, bound: list[_Bound], count: int, depth: int) -> list[GeneratedClause]:
        found: list[GeneratedClause] = []
        for _ in range(count):
            kind = self._random.random()
            clause: GeneratedClause | None
            if kind < 0.45:
                clause = self._traversal(bound)
            elif kind < 0.85 or depth >= 2:
                clause = self._filter(bound)
            else:
                clause = self._negation(bound, depth)
            if clause is not None:
                found.append(clause)
        return found

    def _negation(self, bound: list[_Bound], depth: int) -> GeneratedClause | None:
        inner = list(bound)
        about = self._traversal(inner) or self._filter(bound)
        if about is None:
            return None
        rest = self._more(inner, self._random.randint(0, 2), depth + 1)
        return GeneratedNot((about, *rest))

    def _traversal(self, bound: list[_Bound]) -> str | None:
        """An edge from something bound to something new, bound or nameless."""
        steps = [
            (item, edge, at_source)
            for item in bound
            if isinstance(item.type, NodeType)
            for edge in self._schema.edges.values()
            for at_source in (True, False)
            if item.type.name == (edge.source if at_source else edge.target)
        ]
        if not steps:
            return None
        start, edge, at_source = self._random.choice(steps)
        other = self._end(bound, edge.target if at_source else edge.source)
        is_same = edge.source == edge.target
        ends = [f"${start.name}", other] if at_source else [other, f"${start.name}"]
        if not is_same and self._chance(0.5):
            ends.reverse()
        word = edge.name[0].lower() + edge.name[1:]
        if word in RESERVED:
            word = f'"{word}"'
        if is_same and self._chance(0.25):
            word = f"<{word}>"
        if self._chance(0.25):
            word = f"${self._fresh(bound, edge).name}:{word}"
        elif self._chance(0.3):
            low = self._random.randint(1, 2)
            word += f"{{{low},{low + self._random.randint(0, 2)}}}"
        return f"{ends[0]} {word} {ends[1]}"

    def _end(self, bound: list[_Bound], node: str) -> str:
        known = [
            item for item in bound if isinstance(item.type, NodeType) and item.type.name == node
        ]
        if self._chance(0.2):
            return "$_"
        if known and self._chance(0.25):
            return f"${self._random.choice(known).name}"
        return f"${self._fresh(bound, self._schema.nodes[node]).name}"

    def _filter(self, bound: list[_Bound]) -> str | None:
        properties = [item for entity in bound for item in entity.properties()]
        usable = [item for item in properties if not item[1].is_vector]
        if not usable:
            return None
        left, kind = self._random.choice(usable)
        if kind.is_list:
            return f"{left} contains {self._operand(item_type(kind))}"
        if kind.is_string and self._chance(0.4):
            return self._text_filter(bound, left)
        operator = self._random.choice(_COMPARISONS)
        others = [text for text, other in usable if compatible(kind, other)]
        if self._chance(0.3):
            return f"{left} {operator} {self._random.choice(others)}"
        operand = self._operand(kind)
        is_literal = not operand.startswith("$")
        return (
            f"{operand} {operator} {left}"
            if is_literal and self._chance(0.2)
            else (f"{left} {operator} {operand}")
        )

    def _text_filter(self, bound: list[_Bound], left: str) -> str:
        is_edge = any(
            isinstance(item.type, EdgeType) and left.startswith(f"${item.name}.") for item in bound
        )
        word = random_literal(_STRING, self._random)
        choices = [
            f"{left} contains {word}",
            f"{left} starts_with {word}",
            f"{word} contains {left}",
        ]
        if not is_edge:
            choices += [f"search({left}, {word})", f"fuzzy({left}, {word}, 1)"]
            choices += [f"match_text({left}, {word}) = {self._random.choice(('true', 'false'))}"]
        return self._random.choice(choices)

    # Return, order, limit

    def _tail(self, bound: list[_Bound]) -> str:
        if self._chance(0.3):
            items, keys = self._groups(bound)
            ranking = None
        else:
            items, keys = self._columns(bound)
            ranking = self._ranking(bound)
        order = self._random.sample(keys, k=min(len(keys), self._random.randint(0, 2)))
        order = [f"{key}{self._random.choice(('', ' asc', ' desc'))}" for key in order]
        if ranking is not None:
            order = [ranking, *(key for key in order if key.startswith("$"))]
        tail = f"return {{ {', '.join(items)} }}"
        if order:
            tail += f" order {{ {', '.join(order)} }}"
        if ranking is not None or self._chance(0.4):
            tail += f" limit {self._random.randint(0, 20)}"
        return tail

    def _columns(self, bound: list[_Bound]) -> tuple[list[str], list[str]]:
        """Return items, and what can be ordered by."""
        readable = [item for entity in bound for item in entity.properties()]
        nodes = [f"${item.name}" for item in bound if isinstance(item.type, NodeType)]
        keys = [text for text, kind in readable if kind.is_single]
        items = [self._random.choice(nodes)] if not readable or self._chance(0.3) else []
        for text, kind in self._random.sample(readable, k=min(len(readable), 3)):
            if kind.is_single and self._chance(0.4):
                items.append(f"{text} as c{len(items)}")
                keys.append(f"c{len(items) - 1}")
            else:
                items.append(text)
        if self._chance(0.2):
            items.append(f"{random_literal(_STRING, self._random)} as text")
        return items, keys

    def _groups(self, bound: list[_Bound]) -> tuple[list[str], list[str]]:
        readable = [item for entity in bound for item in entity.properties()]
        nodes = [f"${item.name}" for item in bound if isinstance(item.type, NodeType)]
        items = [f"count({self._random.choice(nodes)}) as n"]
        keys = ["n"]
        numbers = [text for text, kind in readable if kind.is_numeric]
        if numbers and self._chance(0.6):
            items.append(f"{self._random.choice(_NUMBERED)}({self._random.choice(numbers)}) as m")
            keys.append("m")
        plain = [text for text, kind in readable if kind.is_single]
        for text in self._random.sample(plain, k=min(len(plain), self._random.randint(0, 2))):
            items.append(text)
            keys.append(text)
        return items, keys

    def _ranking(self, bound: list[_Bound]) -> str | None:
        if not self._chance(0.25):
            return None
        nodes = [item for item in bound if isinstance(item.type, NodeType)]
        readable = [item for entity in nodes for item in entity.properties()]
        ranks = [
            f"nearest({text}, {self._operand(kind)})" for text, kind in readable if kind.is_vector
        ]
        ranks += [
            f"bm25({text}, {self._operand(_STRING)})" for text, kind in readable if kind.is_string
        ]
        if len(ranks) > 1 and self._chance(0.4):
            first, second = self._random.sample(ranks, k=2)
            return f"rrf({first}, {second})"
        return self._random.choice(ranks) if ranks else None


class _Mutation(_Draft):
    def query(self) -> GeneratedQuery:
        count = self._random.randint(1, 3)
        make = self._delete if self._chance(0.3) else self._write
        tail = "\n".join(make() for _ in range(count))
        return GeneratedQuery(tuple(self._parameters), (), tail, self._values)

    def _types(self) -> list[NodeType | EdgeType]:
        """Types that can be written: nodes need a property, edges a name of their own."""
        edges = [
            item for name, item in self._schema.edges.items() if name not in self._schema.nodes
        ]
        return [*(item for item in self._schema.nodes.values() if item.properties), *edges]

    def _write(self) -> str:
        declared = self._random.choice(self._types())
        if isinstance(declared, NodeType) and self._chance(0.5):
            fields = [name for name in declared.properties if name not in declared.key_columns]
            if fields and self._compared(declared):
                return self._update(declared, fields)
        return self._insert(declared)

    def _insert(self, declared: NodeType | EdgeType) -> str:
        required = [name for name, item in declared.properties.items() if not item.type.nullable]
        names = required + [
            name for name in declared.properties if name not in required and self._chance(0.4)
        ]
        if not names and declared.properties:
            names = [next(iter(declared.properties))]
        pairs = [f"{name}: {self._operand(declared.properties[name].type)}" for name in names]
        if isinstance(declared, EdgeType):
            pairs += [f"from: {self._operand(_STRING)}", f"to: {self._operand(_STRING)}"]
        self._random.shuffle(pairs)
        return f"insert {declared.name} {{ {', '.join(pairs)} }}"

    def _update(self, node: NodeType, fields: list[str]) -> str:
        chosen = self._random.sample(fields, k=min(len(fields), self._random.randint(1, 3)))
        pairs = [f"{name}: {self._operand(node.properties[name].type)}" for name in chosen]
        return f"update {node.name} set {{ {', '.join(pairs)} }} {self._where(node)}"

    def _delete(self) -> str:
        choices = [item for item in self._types() if self._compared(item)]
        declared = self._random.choice(choices)
        return f"delete {declared.name} {self._where(declared)}"

    def _compared(self, declared: NodeType | EdgeType) -> list[tuple[str, PropertyType]]:
        """What a ``where`` can compare."""
        fields = [
            (name, item.type)
            for name, item in declared.properties.items()
            if item.type.is_single and name not in RESERVED
        ]
        if isinstance(declared, EdgeType):
            fields += [("from", _STRING), ("to", _STRING)]
        if declared.properties.keys() & set(BOOLEANS):  # T68
            fields = [item for item in fields if item[1].scalar.family != "bool"]
        return [item for item in fields if item[0] not in BOOLEANS]

    def _where(self, declared: NodeType | EdgeType) -> str:
        name, kind = self._random.choice(self._compared(declared))
        return f"where {name} {self._random.choice(_COMPARISONS)} {self._operand(kind)}"
