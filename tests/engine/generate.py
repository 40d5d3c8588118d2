"""Random graphs and random read queries that type-check, from a seed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

SCALARS = {
    "s": "String?",
    "name": "String",
    "b": "Bool?",
    "i": "I32?",
    "j": "I64?",
    "u": "U32?",
    "w": "U64?",
    "f": "F32?",
    "g": "F64",
    "d": "Date?",
    "t": "DateTime?",
    "e": "enum(low, mid, top)?",
}
LISTS = {"ls": "[String]?", "li": "[I32]?"}
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
NUMERIC = ("i", "j", "u", "w", "f", "g")
WORDS = ("copper", "kettle", "kettles", "iron", "the", "wire", "glass", "coper", "a%b", "ÄÖ", "")
CYCLIC_SHARE = 0.35
"""Of the queries; some of them turn out to have no cycle."""
CYCLES_TRIED = 20
PARAMETER_TYPES = {
    **{name: kind.rstrip("?") for name, kind in SCALARS.items()},
    "e": "String",
}


@dataclass
class Shape:
    """The schema of one random graph."""

    nodes: dict[str, dict[str, str]]
    edges: dict[str, tuple[str, str, dict[str, str]]]

    def text(self) -> str:
        lines = []
        for name, columns in self.nodes.items():
            body = "  ".join(f"{column}: {kind}" for column, kind in columns.items())
            lines.append(f"node {name} {{ k: String @key  {body} }}")
        for name, (source, target, columns) in self.edges.items():
            body = "  ".join(f"{column}: {kind}" for column, kind in columns.items())
            lines.append(f"edge {name}: {source} -> {target} {{ {body} }}")
        return "\n".join(lines)


def random_shape(rng: Random) -> Shape:
    nodes = {}
    for name in ("Ant", "Bee", "Cat")[: rng.randint(1, 3)]:
        chosen = rng.sample(sorted(SCALARS), rng.randint(3, 7))
        columns = {column: SCALARS[column] for column in chosen}
        columns |= {column: kind for column, kind in LISTS.items() if rng.random() < 0.4}
        if rng.random() < 0.5:
            columns["body"], columns["vec"] = "String?", "Vector(2)?"
        nodes[name] = columns
    edges = {}
    for name in ("Hits", "Joins", "Keeps", "Links")[: rng.randint(1, 4)]:
        ends = rng.choice(list(nodes)), rng.choice(list(nodes))
        if rng.random() < 0.4:
            ends = ends[0], ends[0]
        chosen = rng.sample(["i", "s", "d", "g"], rng.randint(0, 2))
        edges[name] = (*ends, {column: SCALARS[column].rstrip("?") + "?" for column in chosen})
    return Shape(nodes, edges)


def random_value(rng: Random, kind: str) -> Any:
    """A JSON value of a declared type; null now and then where that is allowed."""
    if kind.endswith("?") and rng.random() < 0.2:
        return None
    kind = kind.rstrip("?")
    if kind.startswith("["):
        item = kind[1:-1]
        return [random_value(rng, item) for _ in range(rng.randint(0, 3))]
    if kind.startswith("Vector"):
        return [rng.choice([-1, -0.5, 0, 0.25, 0.9, 1]) for _ in range(2)]
    if kind.startswith("enum"):
        return rng.choice(["low", "mid", "top"])
    return {
        "String": lambda: " ".join(rng.choices(WORDS, k=rng.randint(0, 3))),
        "Bool": lambda: rng.random() < 0.5,
        "I32": lambda: rng.choice([-3, -1, 0, 1, 2, 2**31 - 1]),
        "I64": lambda: rng.choice([-3, 0, 1, 2, 2**53 + 1, -(2**63)]),
        "U32": lambda: rng.choice([0, 1, 2, 3, 2**32 - 1]),
        "U64": lambda: rng.choice([0, 1, 2, 2**53 + 1, 2**64 - 1]),
        "F32": lambda: rng.choice([-1.5, 0, 0.1, 1, 2, 2.5]),
        "F64": lambda: rng.choice([-1.5, 0, 0.1, 1, 2, 2.5, 9007199254740992.0]),
        "Date": lambda: f"202{rng.randint(0, 3)}-0{rng.randint(1, 3)}-01",
        "DateTime": lambda: f"2020-01-01T00:00:0{rng.randint(0, 3)}.{rng.randint(0, 9)}Z",
    }[kind]()


def random_records(
    rng: Random, shape: Shape, nodes_max: int = 6, edges_max: int = 10
) -> list[dict[str, Any]]:
    """Nodes and edges; edges with loops and parallels."""
    records: list[dict[str, Any]] = []
    keys: dict[str, list[str]] = {}
    for name, columns in shape.nodes.items():
        keys[name] = [f"{name[0].lower()}{at}" for at in range(rng.randint(0, nodes_max))]
        rng.shuffle(keys[name])
        for key in keys[name]:
            data = {column: random_value(rng, kind) for column, kind in columns.items()}
            records.append({"type": name, "data": {"k": key, **data}})
    for name, (source, target, columns) in shape.edges.items():
        if not keys[source] or not keys[target]:
            continue
        for _ in range(rng.randint(0, edges_max)):
            data = {column: random_value(rng, kind) for column, kind in columns.items()}
            ends = rng.choice(keys[source]), rng.choice(keys[target])
            records.append({"edge": name, "from": ends[0], "to": ends[1], "data": data})
    return records


@dataclass
class QueryMaker:
    """Makes one query. Variables are ``name -> (type, is node)``."""

    rng: Random
    shape: Shape
    declared: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    clauses: list[str] = field(default_factory=list)
    fresh: int = 0
    bound: set[str] = field(default_factory=set)

    def make(self) -> tuple[str, list[str], str, dict[str, Any]]:
        """Head, clauses (in any order), tail, and parameter values."""
        scope: dict[str, tuple[str, bool]] = {}
        is_cyclic = self.rng.random() < CYCLIC_SHARE
        self.clauses = (is_cyclic and self._cycle(scope)) or self._block(scope, depth=0)
        counted = is_cyclic and self.rng.random() < 0.5
        tail = f"return {{ count(${next(iter(scope))}) as n }}" if counted else self._tail(scope)
        head = ", ".join(f"${name}: {kind}" for name, kind in self.declared.items())
        return head, self.clauses, tail, self.params

    def _new(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def _block(self, scope: dict[str, tuple[str, bool]], depth: int) -> list[str]:
        clauses: list[str] = []
        outer = list(scope)
        if not scope or self.rng.random() < 0.2:
            clauses.append(self._binding(scope))
        nodes_max = 3 if depth == 0 else len([1 for _, node in scope.values() if node]) + 1
        for _ in range(self.rng.randint(0 if depth == 0 else 1, 2)):
            clauses.append(self._traversal(scope, nodes_max))
        for _ in range(self.rng.randint(0, 2)):
            clauses.append(self._filter(scope))
        if depth and not any(f"${name}" in clause for clause in clauses for name in outer):
            clauses.append(self._filter({name: scope[name] for name in outer}))
        if depth < 2 and self.rng.random() < (0.4 if depth == 0 else 0.3):
            inner = " ".join(self._block(dict(scope), depth + 1))
            clauses.append(f"not {{ {inner} }}")
        return clauses

    def _cycle(self, scope: dict[str, tuple[str, bool]]) -> list[str]:
        """Edges that close a cycle, with conditions that its nodes differ or are not connected;
        nothing if no cycle was found.
        """
        rng = self.rng
        for _ in range(CYCLES_TRIED):
            closed = self._closed_walk(rng.randint(2, 4))
            if closed is not None:
                break
        else:
            return []
        kinds, edges = closed
        names = [self._new("n") for _ in kinds]
        scope.update((name, (kind, True)) for name, kind in zip(names, kinds, strict=True))
        clauses = [
            self._cycle_edge(scope, edge, names[at], names[(at + 1) % len(names)], forward)
            for at, (edge, forward) in enumerate(edges)
        ]
        first, second = rng.sample(names, 2)
        if rng.random() < 0.5 and scope[first] == scope[second]:
            clauses.append(f"${first}.k != ${second}.k")
        if rng.random() < 0.4:
            edge, (source, target, _) = rng.choice(list(self.shape.edges.items()))
            ends = [[n for n in names if scope[n][0] == kind] for kind in (source, target)]
            if all(ends):
                left, right = (rng.choice(one) for one in ends)
                clauses.append(f"not {{ ${left} {edge[0].lower()}{edge[1:]} ${right} }}")
        if rng.random() < 0.4:
            clauses.append(self._traversal(scope, len(names) + 1))
        if rng.random() < 0.3:
            clauses.append(self._filter(scope))
        return clauses

    def _closed_walk(self, length: int) -> tuple[list[str], list[tuple[str, bool]]] | None:
        """The types of nodes around a cycle, and the edge from each to the next with its way."""
        steps = [
            (name, start, end, forward)
            for name, (source, target, _) in self.shape.edges.items()
            for start, end, forward in ((source, target, True), (target, source, False))
        ]
        kinds, edges = [self.rng.choice(steps)[1]], []
        for at in range(length):
            ends = {kinds[0]} if at == length - 1 else {end for _, _, end, _ in steps}
            open_ = [step for step in steps if step[1] == kinds[-1] and step[2] in ends]
            if not open_:
                return None
            name, _, end, forward = self.rng.choice(open_)
            edges.append((name, forward))
            kinds.append(end)
        return kinds[:-1], edges

    def _cycle_edge(
        self, scope: dict[str, tuple[str, bool]], name: str, left: str, right: str, forward: bool
    ) -> str:
        source, target, _ = self.shape.edges[name]
        edge, variable = name[0].lower() + name[1:], ""
        if self.rng.random() < 0.15:
            variable = self._new("e")
            scope[variable] = (name, False)
            variable = f"${variable}:"
        elif self.rng.random() < 0.1:
            edge += "{1,2}"
        if source == target and self.rng.random() < 0.4:
            low = edge.index("{") if "{" in edge else len(edge)
            edge = f"<{edge[:low]}>{edge[low:]}"
        left, right = (left, right) if forward else (right, left)
        return f"${left} {variable}{edge} ${right}"

    def _binding(self, scope: dict[str, tuple[str, bool]]) -> str:
        kind = self.rng.choice(list(self.shape.nodes))
        name = self._new("n")
        scope[name] = (kind, True)
        self.bound.add(f"${name}")
        if self.rng.random() < 0.3:
            return f'${name}: {kind} {{ k: "{kind[0].lower()}{self.rng.randint(0, 5)}" }}'
        inline = ""
        if self.rng.random() < 0.3:
            column, declared = self.rng.choice(list(self.shape.nodes[kind].items()))
            if not declared.startswith("Vector"):
                base = column if column in SCALARS else {"ls": "s", "li": "i", "body": "s"}[column]
                inline = f" {{ {column}: {self._literal(base, inline=True)} }}"
        return f"${name}: {kind}{inline}"

    def _traversal(self, scope: dict[str, tuple[str, bool]], nodes_max: int) -> str:
        name, (source, target, _) = self.rng.choice(list(self.shape.edges.items()))
        left, right = self._end(scope, source, nodes_max), self._end(scope, target, nodes_max)
        edge = name[0].lower() + name[1:]
        variable = ""
        if self.rng.random() < 0.35:
            found = self._new("e")
            variable = f"${found}:"
            scope[found] = (name, False)
        if source == target and self.rng.random() < 0.4:
            edge = f"<{edge}>"
        if not variable and self.rng.random() < 0.5:
            low = self.rng.randint(1, 3)
            edge += f"{{{low},{low + self.rng.randint(0, 2)}}}"
        # Written backwards only where a binding says which end is which.
        if source != target and {left, right} & self.bound and self.rng.random() < 0.5:
            left, right = right, left
        return f"{left} {variable}{edge} {right}"

    def _end(self, scope: dict[str, tuple[str, bool]], kind: str, nodes_max: int) -> str:
        known = [name for name, found in scope.items() if found == (kind, True)]
        nodes = sum(node for _, node in scope.values())
        if known and (nodes >= nodes_max or self.rng.random() < 0.6):
            return f"${self.rng.choice(known)}"
        if self.rng.random() < 0.15 or nodes > nodes_max:
            return "$_"
        name = self._new("n")
        scope[name] = (kind, True)
        return f"${name}"

    def _columns(self, scope: dict[str, tuple[str, bool]]) -> list[tuple[str, str]]:
        """Properties in scope, as (text, column)."""
        found = []
        for name, (kind, is_node) in scope.items():
            columns = self.shape.nodes[kind] if is_node else self.shape.edges[kind][2]
            found += [(f"${name}.{column}", column) for column in columns if column != "vec"]
        return found

    def _filter(self, scope: dict[str, tuple[str, bool]]) -> str:
        """A condition: simple ones, and ``and``, ``or``, ``not`` and ``case`` of them."""
        rng = self.rng
        if rng.random() < 0.65:
            return self._simple(scope)
        parts = [self._simple(scope) for _ in range(rng.randint(1, 3))]
        parts = [f"not ({part})" if rng.random() < 0.3 else f"({part})" for part in parts]
        joined = f" {rng.choice(('and', 'or'))} ".join(parts)
        shape = rng.random()
        if shape < 0.2:
            return f"not ({joined})"
        if shape < 0.3:
            return f"({joined}) is {rng.choice(('null', 'not null'))}"
        if shape < 0.4:
            return f"case {{ when {joined} then {self._simple(scope)} else {parts[0]} }}"
        return joined if len(parts) > 1 else f"({joined})"

    def _simple(self, scope: dict[str, tuple[str, bool]]) -> str:
        if self.rng.random() < 0.4:
            found = self._with_operators(scope)
            if found is not None:
                return found
        return self._comparison(scope)

    def _with_operators(self, scope: dict[str, tuple[str, bool]]) -> str | None:
        """A condition with ``in``, a null test, arithmetic or a function."""
        rng, options = self.rng, self._columns(scope)
        if not options:
            return None
        left, column = rng.choice(options)
        if rng.random() < 0.3:
            return f"{left} is {rng.choice(('null', 'not null'))}"
        if column in LISTS:
            item = "s" if column == "ls" else "i"
            if rng.random() < 0.5:
                return f"{self._literal(item)} in {left}"
            return f"size({left}) >= {rng.randint(0, 3)}"
        if column == "body":
            return f'contains(lower({left}), "{rng.choice(WORDS[:5])}")'
        if rng.random() < 0.4:
            items = ", ".join(self._literal(column) for _ in range(rng.randint(1, 3)))
            return f"{left} in [{items}]"
        return f"{self.value(left, column)} {rng.choice(OPERATORS)} {self.value(left, column)}"

    def value(self, text: str, column: str) -> str:
        """A value of the type of a column, made of it."""
        rng = self.rng
        if rng.random() < 0.25:
            return self._literal(column)
        if column in ("s", "name"):
            return rng.choice(
                (
                    f"lower({text})",
                    f"upper({text})",
                    f"trim({text})",
                    f'coalesce({text}, "zz")',
                    f"substring({text}, {rng.randint(0, 3)}, length: {rng.randint(0, 4)})",
                    f'concat({text}, "-", {self._literal(column)})',
                    f'replace({text}, "e", "EE")',
                    f'case {{ when length({text}) > 6 then {text} else "short" }}',
                )
            )
        if column in NUMERIC:
            choices = [text, f"coalesce({text}, 1)", f"least({text}, 1)", f"greatest({text}, 2)"]
            if column in ("i", "f", "g", "u"):
                operator = rng.choice("+-*%" if column in "iu" else "+-*/%")
                choices += [f"{text} {operator} {rng.randint(1, 3)}", f"abs({text})"]
            choices += [f"case {{ when {text} > 1 then {text} }}", f"floor({text})"]
            return rng.choice(choices)
        if column in ("d", "t") and rng.random() < 0.4:
            return f"greatest({text}, {self._literal(column)})"
        return f"coalesce({text}, {self._literal(column)})"

    def _comparison(self, scope: dict[str, tuple[str, bool]]) -> str:
        rng = self.rng
        options = self._columns(scope)
        if not options:
            return f'${rng.choice([n for n, (_, node) in scope.items() if node])}.k != ""'
        left, column = rng.choice(options)
        if column in LISTS:
            return f"{left} contains {self._literal('s' if column == 'ls' else 'i')}"
        if column == "body":
            call = rng.choice(("search", "match_text", "fuzzy"))
            text = f'{call}({left}, "{rng.choice(WORDS[:8])} {rng.choice(WORDS[:8])}")'
            return f"{text} = {rng.choice(('true', 'false'))}" if rng.random() < 0.4 else text
        family = NUMERIC if column in NUMERIC else ("s", "name", "e") if column in "sename" else ()
        if rng.random() < 0.35:
            same = [text for text, other in options if other == column or other in family]
            right = rng.choice(same)
        else:
            other = rng.choice(family) if family and column != "e" else column
            right = self._literal("s" if other == "e" and column != "e" else other)
        if column in ("s", "name") and rng.random() < 0.3 and ".e" not in right:
            return f"{left} {rng.choice(('contains', 'starts_with'))} {right}"
        return f"{left} {rng.choice(('=', '!=', '<', '<=', '>', '>='))} {right}"

    def _literal(self, column: str, *, inline: bool = False) -> str:
        """A literal or parameter that a column can be compared with."""
        kind = SCALARS[column].rstrip("?")
        value = random_value(self.rng, kind)
        negative = isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0
        large = isinstance(value, int) and value > 2**63 - 1
        if negative or large or self.rng.random() < 0.3:
            name = self._new("p")
            self.declared[name] = PARAMETER_TYPES[column]
            if not inline and self.rng.random() < 0.1:
                self.declared[name] += "?"
                return f"${name}"
            self.params[name] = value
            return f"${name}"
        if column in ("d", "t"):
            return f'{"date" if column == "d" else "datetime"}("{value}")'
        return json.dumps(value, ensure_ascii=False)

    # What is returned

    def _tail(self, scope: dict[str, tuple[str, bool]]) -> str:
        columns = self._columns(scope)
        nodes = [name for name, (_, node) in scope.items() if node]
        searched = [n for n in nodes if "vec" in self.shape.nodes[scope[n][0]]]
        if searched and self.rng.random() < 0.4:
            return self._search(self.rng.choice(searched), columns, nodes)
        if self.rng.random() < 0.35:
            return self._grouped(columns, nodes)
        items = [text for text, _ in columns if self.rng.random() < 0.3]
        items += [f"${name}" for name in nodes if self.rng.random() < 0.2]
        items += [self._simple(scope) for _ in range(2) if columns and self.rng.random() < 0.2]
        items += [
            self.value(text, column)
            for text, column in columns
            if column in SCALARS and self.rng.random() < 0.15
        ]
        items = items or [f"${nodes[0]}.k"]
        shown = ", ".join(f"{item} as c{at}" for at, item in enumerate(items))
        if self.rng.random() < 0.2:
            sortable = [at for at, item in enumerate(items) if ".l" not in item and "." in item]
            order = ", ".join(f"c{at}{self._direction()}" for at in sortable)
            order = f" order {{ {order} }}" if sortable else ""
            return f"return distinct {{ {shown} }}{order}"
        return f"return {{ {shown} }}{self._order(columns, len(items))}"

    def _direction(self) -> str:
        nulls = self.rng.choice((" nulls first", " nulls last", "", ""))
        return self.rng.choice(("", " asc", " desc")) + nulls

    def _order(self, columns: list[tuple[str, str]], items: int) -> str:
        keys = [text for text, column in columns if column not in LISTS]
        keys += [
            self.value(text, column)
            for text, column in columns
            if column in SCALARS and self.rng.random() < 0.2
        ]
        if not keys or self.rng.random() < 0.3:
            return ""
        chosen = self.rng.sample(keys, min(len(keys), self.rng.randint(1, 2)))
        order = ", ".join(f"{key}{self._direction()}" for key in chosen)
        limit = f" limit {self.rng.randint(0, 6)}" if self.rng.random() < 0.6 else ""
        if limit and self.rng.random() < 0.3:
            limit += f" offset {self.rng.randint(0, 3)}"
        return f" order {{ {order} }}{limit}"

    def _grouped(self, columns: list[tuple[str, str]], nodes: list[str]) -> str:
        keys = [text for text, _ in columns if self.rng.random() < 0.25]
        numbers = [text for text, column in columns if column in NUMERIC]
        texts = [text for text, column in columns if column in ("s", "name")]
        items = [f"count(${self.rng.choice(nodes)})"]
        items += [f"{self.rng.choice(('sum', 'avg', 'min', 'max'))}({n})" for n in numbers[:2]]
        items += [f"{self.rng.choice(('min', 'max', 'count'))}({n})" for n in texts[:1]]
        items += [f"count_distinct({text})" for text, _ in columns if self.rng.random() < 0.15]
        items = keys + items
        shown = ", ".join(f"{item} as c{at}" for at, item in enumerate(items))
        sortable = [at for at, item in enumerate(items) if ".l" not in item or "(" in item]
        order = ", ".join(f"c{at}{self.rng.choice(('', ' desc'))}" for at in sortable)
        return f"return {{ {shown} }} order {{ {order} }}"

    def _search(self, name: str, columns: list[tuple[str, str]], nodes: list[str]) -> str:
        near = f"nearest(${name}.vec, [{self.rng.choice(('0.0', '1.0'))}, 0.5])"
        text = f'bm25(${name}.body, "{self.rng.choice(WORDS[:7])} {self.rng.choice(WORDS[:7])}")'
        ranking = self.rng.choice((near, text, f"rrf({near}, {text})", f"rrf({text}, {near}, 3)"))
        items = [f"${other}.k" for other in nodes]
        shown = ", ".join(f"{item} as c{at}" for at, item in enumerate(items))
        return f"return {{ {shown} }} order {{ {ranking} }} limit {self.rng.randint(1, 5)}"


def random_query(rng: Random, shape: Shape) -> tuple[str, list[str], str, dict[str, Any]]:
    return QueryMaker(rng, shape).make()
