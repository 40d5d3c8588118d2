"""Rows of a query as text: table, key-value blocks, CSV, JSON lines.

Owns the layouts. The input are JSON values, which are printed without rounding or conversion.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from omnigraph import Result
from omnigraph.cli.output import one_line

RowFormat = Literal["table", "kv", "csv", "jsonl", "json"]
FORMATS: Final[tuple[RowFormat, ...]] = ("table", "kv", "csv", "jsonl", "json")

CELL_WIDTH_MAX: Final = 80
"""The widest cell of a table; only this format truncates values."""
_ELLIPSIS: Final = "…"


def render(result: Result, form: RowFormat) -> list[str]:
    """The lines of a result."""
    match form:
        case "json":
            return json.dumps(result.to_json(), indent=2, ensure_ascii=False).split("\n")
        case "jsonl":
            return list(_json_lines(result))
        case "csv":
            return _csv_lines(result)
        case "kv":
            return [_headline(result), *_blocks(result)]
        case "table":
            return [_headline(result), *_table(result)]


def _headline(result: Result) -> str:
    return f"{len(result)} rows from {result.target} via {result.query_name}"


def _json_lines(result: Result) -> Iterator[str]:
    body = result.to_json()
    head = {name: body[name] for name in ("query_name", "target", "row_count")}
    yield _compact({"kind": "metadata", **head})
    for row in body["rows"]:
        yield _compact(row)


def _csv_lines(result: Result) -> list[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows():
        writer.writerow([cell(row[name]) for name in result.columns])
    return text.getvalue().split("\n")[:-1]


def _blocks(result: Result) -> Iterator[str]:
    rows = result.rows()
    if not rows:
        yield "(no rows)"
    for at, row in enumerate(rows, start=1):
        if at > 1:
            yield ""
        yield f"row {at}"
        yield from (f"{name}: {one_line(cell(row[name]))}" for name in result.columns)


def _table(result: Result) -> list[str]:
    rows = result.rows()
    if not rows:
        return ["(no rows)"]
    names = result.columns
    cells = [[_cut(one_line(cell(row[name]))) for name in names] for row in rows]
    heads = [_cut(one_line(name)) for name in names]
    widths = [max(len(line[at]) for line in (heads, *cells)) for at in range(len(names))]
    rule = "-+-".join("-" * width for width in widths)
    return [_line(heads, widths), rule, *(_line(line, widths) for line in cells)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text.ljust(width) for text, width in zip(cells, widths, strict=True))
    return " | ".join(padded).rstrip()


def cell(value: Any) -> str:
    """One value as text: strings as they are, everything else as compact JSON."""
    return value if isinstance(value, str) else _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    return text if len(text) <= CELL_WIDTH_MAX else text[: CELL_WIDTH_MAX - 1] + _ELLIPSIS
