"""A graph as dictionaries: the same rules as the engine, written as plainly as possible.

For differential tests: run the same operations on a graph and on a ``ModelGraph`` and compare
counts, content and the rules that a refusal names. Nothing here shares code with the evaluator;
values are those of JSON, and types are taken to be right.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, entity_id

Row = dict[str, Any]
Content = dict[str, dict[str, Row]]
"""Rows by id by type key. Ids that the graph would make are spelled ``~1``, ``~2``, …"""


class Refused(Exception):
    """The operation breaks these rules, each with the type key it is broken on."""

    def __init__(self, rules: set[tuple[str, str]]) -> None:
        super().__init__(sorted(rules))
        self.rules = rules


@dataclass(frozen=True, slots=True)
class Where:
    """``property operator value``."""

    property: str
    operator: str
    value: Any

    def holds(self, row: Row) -> bool:
        column = {"from": "src", "to": "dst"}.get(self.property, self.property)
        left, right = row[column], self.value
        if left is None or right is None:
            return False
        answers = {
            "=": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }
        return bool(answers[self.operator])


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a mutation. ``action`` is ``insert``, ``update`` or ``delete``."""

    action: str
    type_key: str
    values: Mapping[str, Any] = field(default_factory=dict)
    where: Where | None = None


@dataclass(slots=True)
class _Change:
    """What one operation does to one type."""

    rows: list[tuple[str, Row]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)

    def final(self) -> dict[str, Row]:
        return dict(self.rows)


class ModelGraph:
    """Content, and the operations that change it."""

    def __init__(self, schema: AcceptedSchema) -> None:
        self.schema = schema
        self.content: Content = {owner.key: {} for owner in schema.types()}
        self._made = count(1)

    # -- operations --------------------------------------------------------------------------------

    def mutate(self, statements: Sequence[Statement]) -> tuple[int, int]:
        """Run a mutation; returns how many nodes and edges it affected, or raises ``Refused``."""
        if statements[0].action == "delete":
            return self._delete(statements)
        pending: dict[str, dict[str, Row]] = {}
        counts: Counter[str] = Counter()
        for statement in statements:
            owner = self.schema.type(statement.type_key)
            mine = pending.setdefault(owner.key, {})
            if statement.action == "insert":
                id, row = self._insert(owner, statement.values)
                mine.pop(id, None)
                mine[id] = row
                counts[owner.kind] += 1
                continue
            assert statement.where is not None
            seen = {**self.content[owner.key], **mine}
            for id, row in seen.items():
                if statement.where.holds(row):
                    mine[id] = {**row, **statement.values}
                    counts[owner.kind] += 1
        changes = {key: _Change(list(rows.items())) for key, rows in pending.items() if rows}
        self._apply(changes, overwrite=False, append=False, repeats_allowed=True)
        return counts["node"], counts["edge"]

    def load(self, records: Sequence[Mapping[str, Any]], mode: str) -> int:
        """Load records in the load format; returns how many, or raises ``Refused``."""
        changes: dict[str, _Change] = {}
        for record in records:
            owner: NodeType | EdgeType = (
                self.schema.nodes[record["type"]]
                if "type" in record
                else self.schema.edges[record["edge"]]
            )
            values = dict(record.get("data", {}))
            given = values.pop("id", None)
            if "edge" in record:
                values |= {"from": record["from"], "to": record["to"]}
            id, row = self._insert(owner, values)
            changes.setdefault(owner.key, _Change()).rows.append((given or id, row))
        append, overwrite = mode == "append", mode == "overwrite"
        self._apply(changes, overwrite=overwrite, append=append, repeats_allowed=mode == "merge")
        return len(records)

    def _insert(self, owner: NodeType | EdgeType, values: Mapping[str, Any]) -> tuple[str, Row]:
        row: Row = {name: values.get(name) for name in owner.properties}
        if isinstance(owner, EdgeType):
            row |= {"src": values["from"], "dst": values["to"]}
            return f"~{next(self._made)}", row
        return entity_id(owner, row) or f"~{next(self._made)}", row

    def _delete(self, statements: Sequence[Statement]) -> tuple[int, int]:
        changes: dict[str, _Change] = {}
        for statement in statements:
            assert statement.where is not None
            for id, row in self.content[statement.type_key].items():
                if statement.where.holds(row):
                    changes.setdefault(statement.type_key, _Change()).removed.add(id)
        for key in [key for key in changes if key.startswith("node:")]:
            for edge, column in self._incident(key):
                for id, row in self.content[edge.key].items():
                    if row[column] in changes[key].removed:
                        changes.setdefault(edge.key, _Change()).removed.add(id)
        counts: Counter[str] = Counter()
        for key, change in changes.items():
            counts[key.partition(":")[0]] += len(change.removed)
        self._apply(changes, overwrite=False, append=False, repeats_allowed=True)
        return counts["node"], counts["edge"]

    # -- rules -------------------------------------------------------------------------------------

    def _apply(
        self,
        changes: dict[str, _Change],
        *,
        overwrite: bool,
        append: bool,
        repeats_allowed: bool,
    ) -> None:
        """Make the changes, unless they break a rule."""
        after = copy.deepcopy(self.content)
        for key, change in changes.items():
            if overwrite:
                after[key] = {}
            for id in change.removed:
                after[key].pop(id, None)
            after[key].update(change.final())
        broken: set[tuple[str, str]] = set()
        for key, change in changes.items():
            owner = self.schema.type(key)
            broken |= {(rule, key) for rule in self._value_rules(owner, change)}
            ids = [id for id, _ in change.rows]
            if len(set(ids)) < len(ids) and (not repeats_allowed or owner.key_properties):
                broken.add(("key", key))
            if append and set(ids) & set(self.content[key]):
                broken.add(("exists", key))
            if self._repeats(owner, change, after[key]):
                broken.add(("unique", key))
        broken |= self._orphans(after, changes)
        broken |= self._cardinality(after, changes, overwrite)
        if broken:
            raise Refused(broken)
        self.content = after

    def _value_rules(self, owner: NodeType | EdgeType, change: _Change) -> Iterator[str]:
        for _, row in change.rows:
            for bounds in getattr(owner, "ranges", ()):
                value = row[bounds.property]
                low = bounds.low if bounds.low is not None else float("-inf")
                high = bounds.high if bounds.high is not None else float("inf")
                if value is not None and not low <= float(value) <= high:
                    yield "range"
            for check in getattr(owner, "checks", ()):
                value = row[check.property]
                if value is not None and not re.search(check.pattern, value):
                    yield "check"
            for name, declared in owner.properties.items():
                members = declared.type.enum
                if members is not None and row[name] is not None and row[name] not in members:
                    yield "enum"

    def _repeats(self, owner: NodeType | EdgeType, change: _Change, after: dict[str, Row]) -> bool:
        written = change.final()
        for columns in owner.unique:
            batch = [tuple(row[name] for name in columns) for _, row in change.rows]
            batch = [values for values in batch if None not in values]
            kept = [
                tuple(row[name] for name in columns)
                for id, row in after.items()
                if id not in written
            ]
            final = {tuple(row[name] for name in columns) for row in written.values()}
            if len(set(batch)) < len(batch):
                return True
            if any(None not in values and values in final for values in kept):
                return True
        return False

    def _orphans(self, after: Content, changes: Mapping[str, _Change]) -> set[tuple[str, str]]:
        broken = set()
        for edge in self.schema.edges.values():
            for column, end in (("src", edge.source), ("dst", edge.target)):
                nodes = after[f"node:{end}"]
                if any(row[column] not in nodes for row in after[edge.key].values()):
                    broken.add(("endpoint", edge.key))
        return broken

    def _cardinality(
        self, after: Content, changes: Mapping[str, _Change], overwrite: bool
    ) -> set[tuple[str, str]]:
        broken = set()
        for edge in self.schema.edges.values():
            change = changes.get(edge.key)
            if change is None:
                continue
            before = {} if overwrite else self.content[edge.key]
            ids = {*change.final(), *change.removed}
            touched = {row["src"] for row in change.final().values()}
            touched |= {before[id]["src"] for id in ids if id in before}
            gone = set(self.content[f"node:{edge.source}"]) - set(after[f"node:{edge.source}"])
            counts = Counter(row["src"] for row in after[edge.key].values())
            low, high = edge.cardinality.low, edge.cardinality.high
            for source in touched - gone:
                if counts[source] < low or (high is not None and counts[source] > high):
                    broken.add(("cardinality", edge.key))
        return broken

    def _incident(self, node_key: str) -> Iterator[tuple[EdgeType, str]]:
        name = node_key.partition(":")[2]
        for edge in self.schema.edges.values():
            if edge.source == name:
                yield edge, "src"
            if edge.target == name:
                yield edge, "dst"
