"""Reads NDJSON lines of one layout as columns, without a JSON parser.

Most files are written by one program: lines of a type have the same members in the same order, and
differ in their values only. The layout of the first line is its constant text around the values.
All lines with this text are found by comparing words of eight bytes; their values are then slices
of the block. Nothing is accepted that the exact reader would refuse: a line with an escape, a
control character or any other text between its values is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ingest.ndjson_lines import LineBlock
from omnigraph.ingest.records import parse_strict
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model.types import PropertyType

LAYOUTS_MAX: Final = 16
"""Layouts that a block is compared with; lines with another one are parsed."""

LINES_MIN: Final = 64
"""Fewer lines are parsed: comparing them costs more than parsing."""

_QUOTE, _ZERO, _MINUS, _PLUS, _NULL = b'"0-+n'
_TOKEN: Final = re.compile(rb'"([^"]*)"|([{}:,]+)|( +)|([^"{}:, \[\]]+)')
_NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_FAMILIES: Final = ("string", "integer", "float", "bool", "date", "datetime")


@dataclass(frozen=True, slots=True)
class _LineValue:
    """A value of a layout: its column, and where it stands in a line.

    A string lies between the quotes ``quote`` and ``quote + 1``. Any other value ends ``tail``
    bytes before the quote ``quote``, or before the end of the line if there is none.
    """

    column: str
    is_string: bool
    quote: int | None = None
    tail: int = 0


@dataclass(frozen=True, slots=True)
class _LineLayout:
    """The constant texts of a line and the values between them; one text more than values."""

    owner: NodeType | EdgeType
    quotes: int
    texts: list[bytes] = field(default_factory=list)
    values: list[_LineValue] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LayoutRows:
    """Rows of one type: the values by column, as the JSON parser gives them, and line numbers."""

    owner: NodeType | EdgeType
    columns: Mapping[str, pa.Array]
    rows: np.ndarray[Any, Any]
    """Which lines of the block these are, counted from 0."""


def read_layouts(block: LineBlock, schema: AcceptedSchema) -> Iterator[LayoutRows]:
    """The rows of all lines that are read by their layout; the other lines are to be parsed."""
    if len(block.ends) < LINES_MIN or not block.is_plain():
        return
    positions = np.flatnonzero(block.data[: len(block.block)] == _QUOTE)
    first = np.searchsorted(positions, block.starts)
    counts = np.diff(np.append(first, len(positions)))
    left = np.arange(len(block.ends))
    for _ in range(LAYOUTS_MAX):
        if len(left) < LINES_MIN:
            return
        layout = _layout_of(block.block[block.starts[left[0]] : block.ends[left[0]]], schema)
        alike = counts[left] == (-1 if layout is None else layout.quotes)
        if layout is None:
            alike[0] = True  # this line is parsed; another layout may follow
            left = left[~alike]
            continue
        rows, slices = _slices(block, layout, left[alike], positions, first)
        if len(rows):
            columns = _columns(block, layout, slices)
            if columns is not None:
                yield LayoutRows(layout.owner, columns, rows)
        taken = np.zeros(len(block.ends), dtype=bool)
        taken[rows] = True
        taken[left[0]] = True
        left = left[~taken[left]]


# -- layouts ---------------------------------------------------------------------------------------


def _layout_of(line: bytes, schema: AcceptedSchema) -> _LineLayout | None:
    """The layout of a line; None when it is no correct record of plain values."""
    try:
        record = parse_strict(line.decode("utf-8"))
    except ValueError:
        return None
    owner = _owner(record, schema)
    if owner is None:
        return None
    layout = _LineLayout(owner, line.count(b'"'))
    path: list[str] = []
    name, text, quotes, at = None, b"", 0, 0
    open_tail: _LineValue | None = None
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        string, marks, blank, literal = token.groups()
        column = None
        if string is not None:
            is_name = line[at:].lstrip(b" ").startswith(b":")
            if is_name:
                name = string.decode("utf-8")
            else:
                column = _column(owner, path, name)
            if open_tail is not None:
                tail = len(text)
                layout.values[-1] = _LineValue(open_tail.column, False, quotes, tail)
                open_tail = None
            if column is not None:
                layout.texts.append(text + b'"')
                layout.values.append(_LineValue(column, True, quotes))
                text = b'"'
            else:
                text += token[0]
            quotes += 2
            continue
        if literal is not None:
            column = _column(owner, path, name)
            if column is None or open_tail is not None:
                return None
            layout.texts.append(text)
            open_tail = _LineValue(column, False)
            layout.values.append(open_tail)
            text = b""
            continue
        for mark in (marks or b"").decode():
            if mark == "{":
                path.append(name or "")
            elif mark == "}":
                path.pop()
        text += marks if marks is not None else blank
    if open_tail is not None:
        layout.values[-1] = _LineValue(open_tail.column, False, None, len(text))
    layout.texts.append(text)
    return layout


def _owner(record: Any, schema: AcceptedSchema) -> NodeType | EdgeType | None:
    """The type of a record whose members are all known, and have plain types."""
    if not isinstance(record, Mapping) or not isinstance(record.get("data", {}), Mapping):
        return None
    if set(record) <= {"type", "data"} and isinstance(record.get("type"), str):
        owner: NodeType | EdgeType | None = schema.nodes.get(record["type"])
    elif isinstance(record.get("edge"), str):
        owner = schema.edge(record["edge"])
    else:
        return None
    if owner is None or not set(record) <= {"type", "edge", "data", *owner.endpoints.values()}:
        return None
    ends = (record.get(name) for name in owner.endpoints.values())
    if ("type" in record) == ("edge" in record) or not all(isinstance(end, str) for end in ends):
        return None
    for name in record.get("data", {}):
        declared = owner.properties.get(name)
        if name != "id" and (declared is None or not _is_plain(declared.type)):
            return None
    return owner


def _is_plain(kind: PropertyType) -> bool:
    return kind.is_single and kind.scalar.family in _FAMILIES


def _column(owner: NodeType | EdgeType, path: list[str], name: str | None) -> str | None:
    """The column of a value; None for the name of the type, which is constant."""
    if path == ["", "data"]:
        return name
    return next((column for column, shown in owner.endpoints.items() if shown == name), None)


# -- values ----------------------------------------------------------------------------------------


def _slices(
    block: LineBlock,
    layout: _LineLayout,
    rows: np.ndarray[Any, Any],
    positions: np.ndarray[Any, Any],
    first: np.ndarray[Any, Any],
) -> tuple[np.ndarray[Any, Any], list[tuple[Any, Any]]]:
    """The lines that have a layout, and the begin and end of each of its values in them."""
    ends, base = block.ends[rows], first[rows]
    begin = block.starts[rows]
    good = np.ones(len(rows), dtype=bool)
    found: list[tuple[Any, Any]] = []
    for text, value in zip(layout.texts, layout.values, strict=False):
        good &= block.same(begin, text)
        start = begin + len(text)
        if value.is_string:
            assert value.quote is not None
            opened, closed = positions[base + value.quote], positions[base + value.quote + 1]
            good &= start == opened + 1
            start, end = opened + 1, closed
        else:
            end = ends if value.quote is None else positions[base + value.quote]
            end = end - value.tail
            good &= end > start
        found.append((start, end))
        begin = np.minimum(np.maximum(end, start), len(block.block))
    good &= block.same(begin, layout.texts[-1])
    good &= begin + len(layout.texts[-1]) == ends
    if good.all():
        return rows, found
    return rows[good], [(start[good], end[good]) for start, end in found]


def _columns(
    block: LineBlock, layout: _LineLayout, slices: list[tuple[Any, Any]]
) -> dict[str, pa.Array] | None:
    """The values as the JSON parser gives them; None when some are to be parsed."""
    data, owner = pa.py_buffer(block.block), layout.owner
    kinds = {name: item.type for name, item in owner.properties.items()}
    columns: dict[str, pa.Array] = {}
    for value, (start, end) in zip(layout.values, slices, strict=True):
        texts = _texts(data, start, end)
        kind = kinds.get(value.column)
        if not value.is_string:
            found = _literals(block, kind, texts, start, end)
        elif kind is None or kind.scalar.family in ("string", "date", "datetime"):
            found = texts
        else:
            found = None  # a string where none may be
        if found is None:
            return None
        columns[value.column] = found
    return columns


def _texts(data: pa.Buffer, start: np.ndarray[Any, Any], end: np.ndarray[Any, Any]) -> pa.Array:
    """Slices of the block as strings: every other one of the pieces between the positions."""
    offsets = np.empty(2 * len(start), dtype=np.int32)
    offsets[0::2], offsets[1::2] = start, end
    pieces = pa.Array.from_buffers(
        pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )
    return pieces.take(pa.array(np.arange(0, len(offsets), 2, dtype=np.int32)))


def _literals(
    block: LineBlock,
    kind: PropertyType | None,
    texts: pa.Array,
    start: np.ndarray[Any, Any],
    end: np.ndarray[Any, Any],
) -> pa.Array | None:
    """Numbers, booleans and nulls; None when a text is none of them."""
    if (block.data[start] == _NULL).any():
        absent = pc.equal(texts, "null")
        texts = pc.if_else(absent, pa.scalar(None, pa.string()), texts)
        if texts.null_count == len(texts):
            return texts
    family = None if kind is None else kind.scalar.family
    if kind is None or family in ("string", "date", "datetime"):
        return None
    try:
        if family == "bool":
            known = pc.is_in(texts, value_set=pa.array(["true", "false", None], pa.string()))
            return pc.equal(texts, "true") if pc.all(known).as_py() else None
        if family == "float":
            good = pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py()
            return texts.cast(pa.float64()) if good is not False else None
        if not _are_integers(block, start, end):
            return None
        return texts.cast(kind.scalar.arrow_type())
    except pa.ArrowInvalid:
        return None


def _are_integers(block: LineBlock, start: np.ndarray[Any, Any], end: np.ndarray[Any, Any]) -> bool:
    """Whether no text begins as no JSON integer does; Arrow refuses what else is wrong."""
    head, size = block.data[start], end - start
    if (head == _PLUS).any() or ((head == _ZERO) & (size > 1)).any():
        return False
    negative = head == _MINUS
    return not (negative.any() and (negative & (block.data[start + 1] == _ZERO)).any())
