"""Reads one record of a load: a JSON object becomes a row of stored values.

The strict mode refuses unknown fields. The compatible mode, for older clients, ignores them and
reads values of the wrong JSON type as null where null is allowed. Every problem of a record is
reported. This is the reference implementation of the rules: the fast reader of ``ndjson`` passes
every line to it that Arrow does not accept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from omnigraph.constraints.coerce import relaxed
from omnigraph.errors import InvalidValue
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.model.python_values import plain_value
from omnigraph.model.types import PropertyType
from omnigraph.prepare.entity_rows import Row

_NODE_FIELDS: Final = frozenset({"type", "data"})
_EDGE_FIELDS: Final = frozenset({"edge", *EdgeType.endpoints.values(), "data"})


class RecordReader:
    """Converts parsed records to rows and adds them to ``collector``."""

    def __init__(self, collector: RowCollector, *, strict: bool) -> None:
        self._collector = collector
        self._schema: AcceptedSchema = collector.schema
        self._strict = strict
        self._kinds: dict[str, dict[str, PropertyType]] = {}

    def read(self, record: object, at: int) -> None:
        """Read one record; ``at`` is its line (strict) or its number (compatible)."""
        if not isinstance(record, Mapping):
            self._problem("syntax", "a record is a JSON object", at)
            return
        owner = self._owner(record, at)
        if owner is None:
            return
        row: Row = {}
        good = True
        if isinstance(owner, EdgeType):
            good = self._read_ends(record, owner, row, at)
        data = record.get("data")
        if data is None and "data" not in record:
            data = {}
        if not isinstance(data, Mapping):
            self._problem("syntax", "`data` is a JSON object", at, owner)
            return
        if self._read_data(data, owner, row, at) and good:
            self._collector.add_row(owner, row, at)

    # -- fields of a record ------------------------------------------------------------------------

    def _owner(self, record: Mapping[str, Any], at: int) -> NodeType | EdgeType | None:
        kinds = [name for name in ("type", "edge") if name in record]
        if not kinds or (len(kinds) == 2 and self._strict):
            problem = "both `type` and `edge`" if kinds else "neither `type` nor `edge`"
            self._problem("syntax", f"the record has {problem}", at)
            return None
        kind, name = kinds[0], record[kinds[0]]
        if not isinstance(name, str):
            self._problem("syntax", f"`{kind}` is not a string", at)
            return None
        found = self._schema.nodes.get(name) if kind == "type" else self._schema.edge(name)
        if found is None:
            known = self._schema.nodes if kind == "type" else self._schema.edges
            hint = did_you_mean(name, known)
            what = "node" if kind == "type" else "edge"
            message = f"there is no {what} type {name[:100]!r}" + (f"; {hint}" if hint else "")
            self._problem("syntax", message, at)
            return None
        allowed = _NODE_FIELDS if kind == "type" else _EDGE_FIELDS
        unknown = [field for field in record if field not in allowed]
        if unknown and self._strict:
            hint = did_you_mean(unknown[0], allowed)
            message = f"unknown field {unknown[0][:100]!r}" + (f"; {hint}" if hint else "")
            self._problem("syntax", message, at, found)
            return None
        return found

    def _read_ends(self, record: Mapping[str, Any], owner: EdgeType, row: Row, at: int) -> bool:
        good = True
        for column, field in owner.endpoints.items():
            value = record.get(field)
            if not isinstance(value, str) or not _is_text(value):
                message = f"edge {owner.name} needs `{field}`, the id of a node as a string"
                self._problem("syntax", message, at, owner, column)
                good = False
            row[column] = value
        return good

    # -- the data ----------------------------------------------------------------------------------

    def _read_data(
        self, data: Mapping[str, Any], owner: NodeType | EdgeType, row: Row, at: int
    ) -> bool:
        kinds = self._kinds_of(owner)
        good = True
        for name, value in data.items():
            kind = kinds.get(name)
            if name == "id":
                good &= self._read_id(value, owner, row, at)
            elif kind is not None:
                good &= self._read_value(name, kind, value, owner, row, at)
            elif self._strict:
                hint = did_you_mean(name, owner.properties)
                message = f"{owner.name} has no property {name[:100]!r}"
                message += f"; {hint}" if hint else ""
                self._problem("syntax", message, at, owner, name[:100])
                good = False
        return good

    def _read_id(self, value: Any, owner: NodeType | EdgeType, row: Row, at: int) -> bool:
        if isinstance(value, str) and _is_text(value):
            row["id"] = value
            return True
        self._problem("type", f"{owner.name}: `id` is not a string", at, owner, "id")
        return False

    def _read_value(
        self,
        name: str,
        kind: PropertyType,
        value: Any,
        owner: NodeType | EdgeType,
        row: Row,
        at: int,
    ) -> bool:
        try:
            value = plain_value(value)
            row[name] = kind.accept(list(value) if isinstance(value, tuple) else value)
        except InvalidValue as problem:
            if not self._strict and self._forgive(name, kind, value, owner, row):
                return True
            self._problem("type", f"{owner.name}.{name}: {problem.message}", at, owner, name)
            return False
        return True

    def _forgive(
        self, name: str, kind: PropertyType, value: Any, owner: NodeType | EdgeType, row: Row
    ) -> bool:
        """Compatible mode: a bad list item becomes null, and so does a bad value."""
        if kind.is_vector:
            return False
        if kind.is_list and isinstance(value, list):
            row[name] = [_accept_item(kind, item) for item in value]
            return True
        if not owner.properties[name].type.nullable:
            return False
        row[name] = None
        return True

    def _kinds_of(self, owner: NodeType | EdgeType) -> dict[str, PropertyType]:
        found = self._kinds.get(owner.key)
        if found is None:
            found = {name: relaxed(item.type) for name, item in owner.properties.items()}
            self._kinds[owner.key] = found
        return found

    def _problem(
        self,
        rule: str,
        message: str,
        at: int,
        owner: NodeType | EdgeType | None = None,
        property: str | None = None,
    ) -> None:
        self._collector.problem(rule, message, at, owner, property=property)


def _accept_item(kind: PropertyType, item: Any) -> Any:
    try:
        return kind.scalar.accept(item)
    except InvalidValue:
        return None


def _is_text(value: str) -> bool:
    """Whether a string is valid UTF-8: JSON can spell lone surrogates."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class DuplicateMember(ValueError):
    """An object names a member twice."""


def parse_strict(text: str) -> Any:
    """Parse JSON without duplicate members and without NaN; raises ``ValueError``."""
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise DuplicateMember(f"the member {name[:100]!r} occurs twice")
            seen.add(name)
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


class _NegativeZero(int):
    """The number `-0`: zero as an integer, negative zero as a float."""

    def __float__(self) -> float:
        return -0.0


def _whole(text: str) -> int:
    return _NegativeZero() if text == "-0" else int(text)


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant, parse_int=_whole
)
