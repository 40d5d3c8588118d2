"""Query results: typed columns, converted to rows, Arrow, pandas or JSON on demand.

A result names the query, the branch and the commit it came from. Values in rows are JSON values in
the spelling of the language: dates and instants as text, whole entities as objects.
"""

from __future__ import annotations

import html
import importlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.engine.exec.profile import StepProfile
from omnigraph.engine.limits import Guard, Limits
from omnigraph.errors import NotAvailable
from omnigraph.predicates.values import Values

Row = dict[str, Any]

HTML_ROWS_MAX: Final = 50
"""Rows that a notebook shows."""
BUILDERS_MAX: Final = 512
"""Row builders that are cached, one per tuple of column names."""
BUILDER_ROWS_MIN: Final = 16
"""Fewer rows are built by a generic loop: compiling a builder takes longer."""
CHECKED_VALUES: Final = 16_384
"""Values that are converted between two checks of the deadline."""
_LIST_WEIGHT: Final = 16
"""The cost of a list, or of one number of a vector, in single values."""
_SAME: Final = {"string", "bool", "integer"}


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """What a query read: the head of a branch, or a named snapshot."""

    branch: str | None
    snapshot: str | None

    def to_json(self) -> dict[str, str | None]:
        return {"branch": self.branch, "snapshot": self.snapshot}

    def __str__(self) -> str:
        return f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"


@dataclass(frozen=True, slots=True)
class Entities:
    """Whole entities, as one column per property."""

    names: tuple[str, ...]
    parts: tuple[Values, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def take(self, places: np.ndarray[Any, Any]) -> Entities:
        return Entities(self.names, tuple(part.take(places) for part in self.parts))

    def to_arrow(self) -> pa.Array:
        arrays = [_shown(part) for part in self.parts]
        return pa.StructArray.from_arrays(arrays, names=list(self.names))

    def to_json(self, *, js_safe: bool) -> list[Any]:
        parts = [json_values(part, js_safe=js_safe) for part in self.parts]
        return _objects(self.names, parts)


@dataclass(frozen=True)
class Result:
    """The rows of one query."""

    query_name: str
    target: ReadTarget
    commit_id: str
    """The commit whose snapshot was read."""
    columns: tuple[str, ...]
    """Column names in order."""
    data: tuple[Values | Entities, ...] = field(repr=False)
    steps: tuple[StepProfile, ...] = field(default=(), repr=False)
    """The measured steps of a profiled query."""
    limits: Limits | None = field(default=None, repr=False, compare=False)
    """The remaining limits of the query, which apply to each conversion to rows."""
    cancelled: threading.Event | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.data[0])

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def rows(self, *, js_safe: bool = False) -> list[Row]:
        """One object per row. ``js_safe``: whole numbers beyond 2^53 as decimal strings."""
        step = max(1, CHECKED_VALUES // sum(_weight(item) for item in self.data))
        if self.limits is None or len(self) <= step:
            return self._converted(self.data, js_safe=js_safe)
        guard, rows = Guard(self.limits, self.cancelled), []
        for start in range(0, len(self), step):
            guard.check()
            places = np.arange(start, min(start + step, len(self)))
            rows += self._converted([item.take(places) for item in self.data], js_safe=js_safe)
        return rows

    def _converted(self, data: Sequence[Values | Entities], *, js_safe: bool) -> list[Row]:
        columns = [
            item.to_json(js_safe=js_safe)
            if isinstance(item, Entities)
            else json_values(item, js_safe=js_safe)
            for item in data
        ]
        return _objects(self.columns, columns)

    @cached_property
    def table(self) -> pa.Table:
        arrays = [
            item.to_arrow() if isinstance(item, Entities) else _shown(item) for item in self.data
        ]
        return pa.Table.from_arrays(arrays, names=list(self.columns))

    def to_arrow(self) -> pa.Table:
        """The result as an Arrow table; instants are timestamps, whole entities structs."""
        return self.table

    def to_pandas(self) -> Any:
        """A pandas DataFrame (needs pandas). Whole numbers stay whole, also beside nulls."""
        pandas = _installed("pandas")
        whole = {
            pa.int32(): pandas.Int32Dtype(),
            pa.int64(): pandas.Int64Dtype(),
            pa.uint32(): pandas.UInt32Dtype(),
            pa.uint64(): pandas.UInt64Dtype(),
        }
        holes = {column.type for column in self.table.columns if column.null_count}
        mapped = {kind: shown for kind, shown in whole.items() if kind in holes}
        return self.table.to_pandas(types_mapper=mapped.get)

    def to_polars(self) -> Any:
        """A polars DataFrame (needs polars)."""
        return _installed("polars").from_arrow(self.table)

    def to_json(self, *, js_safe: bool = False) -> dict[str, Any]:
        """The result in the form of the HTTP API and of ``--json``."""
        body: dict[str, Any] = {
            "query_name": self.query_name,
            "target": self.target.to_json(),
            "row_count": len(self),
        }
        if self.columns:
            body["columns"] = list(self.columns)
        body["rows"] = self.rows(js_safe=js_safe)
        body["graph_commit_id"] = self.commit_id
        return body

    def profile_json(self) -> dict[str, Any]:
        """The profile as JSON values."""
        steps = [step.to_json() for step in self.steps]
        return {"query_name": self.query_name, "row_count": len(self), "steps": steps}

    def profile_lines(self) -> list[str]:
        """The profile as text: rows, time and access path of every step."""
        heads = ("rows", "ms", "access", "step")
        cells = [
            (
                str(step.rows_out),
                f"{step.time_ms:.2f}",
                step.access,
                "  " * step.depth + step.text,
            )
            for step in self.steps
        ]
        a, b, c = (max(len(row[at]) for row in (heads, *cells)) for at in range(3))
        return [
            f"{row[0]:>{a}}  {row[1]:>{b}}  {row[2]:<{c}}  {row[3]}".rstrip()
            for row in (heads, *cells)
        ]

    def _repr_html_(self) -> str:
        shown = self._head(HTML_ROWS_MAX).rows()
        names = self.columns
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        lines = [
            "<tr>"
            + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in names)
            + "</tr>"
            for row in shown
        ]
        more = f", the first {len(shown)} shown" if len(shown) < len(self) else ""
        caption = f"{len(self)} rows from {self.target} via {self.query_name}{more}"
        return (
            f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )

    def _head(self, rows: int) -> Result:
        if len(self) <= rows:
            return self
        data = tuple(item.take(np.arange(rows)) for item in self.data)
        return Result(self.query_name, self.target, self.commit_id, self.columns, data)


def _weight(item: Values | Entities) -> int:
    """The cost of converting one row of a column, in single values."""
    if isinstance(item, Entities):
        return sum(_weight(part) for part in item.parts)
    return 1 if item.type.is_single else _LIST_WEIGHT * (item.type.dimensions or 1)


def _shown(values: Values) -> pa.Array:
    """A column for other libraries. Instants are stored as Arrow ``date64``, which most libraries
    truncate to days, so they become timestamps.
    """
    array = values.to_arrow()
    if values.type.scalar.family != "datetime":
        return array
    instant = pa.timestamp("ms", "UTC")
    return array.cast(pa.list_(instant) if values.type.is_list else instant)


def _objects(names: tuple[str, ...], columns: list[list[Any]]) -> list[Row]:
    """One object with these names for each row."""
    if len(columns[0]) < BUILDER_ROWS_MIN:
        return [dict(zip(names, row, strict=False)) for row in zip(*columns, strict=True)]
    return _builder(names)(columns)


def _installed(name: str) -> Any:
    """An optional library, or ``NotAvailable`` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotAvailable(
            f"{name} is not installed", remedy=f"Install {name}, or use `to_arrow`."
        ) from error


@lru_cache(maxsize=BUILDERS_MAX)
def _builder(names: tuple[str, ...]) -> Callable[[list[list[Any]]], list[Row]]:
    """A compiled function from columns to rows with these names. A dict display with constant keys
    is several times as fast as a generic loop, which would dominate the cost of a row.
    """
    places = [f"v{at}" for at in range(len(names))]
    pairs = ", ".join(f"{name!r}: {at}" for name, at in zip(names, places, strict=True))
    rows = f"for {', '.join(places)}, in zip(*columns, strict=True)"
    made: Callable[[list[list[Any]]], list[Row]] = eval(f"lambda columns: [{{{pairs}}} {rows}]")
    return made


def json_values(values: Values, *, js_safe: bool = False) -> list[Any]:
    """A column as the JSON values of its type."""
    kind = values.type
    stored = values.to_list()
    wide = js_safe and kind.scalar.value_kind == "bigint"
    if kind.scalar.family in _SAME and not wide:
        return stored
    if kind.scalar.name == "F64" and kind.is_single:
        return [v if v is None or v - v == 0 else kind.produce(v) for v in stored]
    if wide or not kind.is_single:
        return [kind.produce(value, js_safe=js_safe) for value in stored]
    produce = kind.scalar.produce
    return [None if value is None else produce(value) for value in stored]


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
