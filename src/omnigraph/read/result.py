"""Results: an Arrow table first, and everything else made from it on demand.

A result knows which query, branch and commit it came from. Values in rows are JSON values as the
language spells them: dates and instants as text, whole entities as objects.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from omnigraph.query.checked import Column
from omnigraph.query.expressions import EntityType
from omnigraph.read.profile import StepProfile
from omnigraph.schema import AcceptedSchema
from omnigraph.types import PropertyType

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]

HTML_ROWS_MAX: Final = 50
"""A notebook shows this many rows, and says how many there are."""
_SAME: Final = {"string", "bool", "integer"}


@dataclass(frozen=True, slots=True)
class Target:
    """What was read: a branch, or a snapshot of one."""

    branch: str | None
    snapshot: str | None

    def to_json(self) -> dict[str, str | None]:
        return {"branch": self.branch, "snapshot": self.snapshot}

    def __str__(self) -> str:
        return f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"


@dataclass(frozen=True)
class Result:
    """The rows of one query."""

    query_name: str
    target: Target
    commit_id: str
    """The commit whose state was read."""
    table: pa.Table = field(repr=False)
    result_columns: tuple[Column, ...] = field(repr=False)
    schema: AcceptedSchema = field(repr=False)
    steps: tuple[StepProfile, ...] = field(default=(), repr=False)
    """What each step really did, when the query was profiled."""

    @property
    def columns(self) -> list[str]:
        """Column names in order."""
        return [item.name for item in self.result_columns]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def rows(self, *, js_safe: bool = False) -> list[Row]:
        """One object per row. ``js_safe``: whole numbers beyond 2^53 as decimal strings."""
        names = self.columns
        columns = [
            self._values(column.type, self.table.column(at), js_safe)
            for at, column in enumerate(self.result_columns)
        ]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pandas(self) -> Any:
        """A pandas DataFrame (needs pandas)."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A polars DataFrame (needs polars)."""
        import polars  # type: ignore[import-not-found, unused-ignore]

        return polars.from_arrow(self.table)

    def to_json(self, *, js_safe: bool = False) -> dict[str, Any]:
        """The answer as the HTTP API and ``--json`` give it."""
        body: dict[str, Any] = {
            "query_name": self.query_name,
            "target": self.target.to_json(),
            "row_count": len(self),
        }
        if self.columns:
            body["columns"] = self.columns
        body["rows"] = self.rows(js_safe=js_safe)
        body["graph_commit_id"] = self.commit_id
        return body

    def profile_json(self) -> dict[str, Any]:
        """What every step did, as data."""
        steps = [step.to_json() for step in self.steps]
        return {"query_name": self.query_name, "row_count": len(self), "steps": steps}

    def profile_lines(self) -> list[str]:
        """What every step did: rows, time, and how it reached them."""
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
        table = self.table.slice(0, rows)
        return Result(
            self.query_name, self.target, self.commit_id, table, self.result_columns, self.schema
        )

    # Values

    def _values(
        self, kind: PropertyType | EntityType, column: pa.ChunkedArray, js_safe: bool
    ) -> list[Any]:
        if isinstance(kind, EntityType):
            return self._entities(kind, column, js_safe)
        return json_values(kind, column, js_safe=js_safe)

    def _entities(self, kind: EntityType, column: pa.ChunkedArray, js_safe: bool) -> list[Any]:
        import pyarrow as pa

        if not pa.types.is_struct(column.type):
            return list(column.to_pylist())
        types = {item.name: item.type for item in self.schema.type(kind.key).columns()}
        whole = column.combine_chunks()
        names = [field.name for field in column.type]
        parts = [json_values(types[n], whole.field(n), js_safe=js_safe) for n in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]


def json_values(
    kind: PropertyType, column: pa.Array | pa.ChunkedArray, *, js_safe: bool = False
) -> list[Any]:
    """A column as the JSON values of its type."""
    wide = js_safe and kind.scalar.value_kind == "bigint"
    if kind.scalar.family in _SAME and not wide:
        return list(column.to_pylist())
    stored = _stored(kind, column)
    if kind.scalar.name == "F64" and kind.is_single:
        return [None if v is None else (v if v - v == 0 else kind.produce(v)) for v in stored]
    produce: Callable[[Any], Any] = kind.scalar.produce
    if wide or not kind.is_single:
        return [kind.produce(value, js_safe=js_safe) for value in stored]
    return [None if value is None else produce(value) for value in stored]


def _stored(kind: PropertyType, column: pa.Array | pa.ChunkedArray) -> Sequence[Any]:
    """Dates and instants as the whole numbers they are stored as."""
    import pyarrow as pa

    if kind.scalar.family not in ("date", "datetime"):
        return list(column.to_pylist())
    number = pa.int32() if kind.scalar.family == "date" else pa.int64()
    if kind.is_list:
        return list(column.cast(pa.list_(number)).to_pylist())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return list(column.view(number).to_pylist())


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)
