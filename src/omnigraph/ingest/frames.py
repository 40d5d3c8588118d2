"""DataFrames and Arrow tables as input of a load.

pandas and polars DataFrames, Arrow tables, batches and readers, and DuckDB results implement the
Arrow PyCapsule protocol or the older dataframe protocol, so that none of these libraries is
imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyarrow import interchange

from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import EdgeType, NodeType

_INDEX: Final = "__index_level_"
"""The prefix that pandas gives to columns of an unnamed index, which are no properties."""


def is_tabular(source: Any) -> bool:
    """Whether a source implements one of the protocols that Arrow reads."""
    protocols = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")
    return any(hasattr(type(source), name) for name in protocols)


def require_type(source: Any, type_name: str | None) -> str:
    """The type of a table's rows; raises when none is given."""
    if type_name is None:
        raise InvalidInput(
            f"a {type(source).__name__} needs the name of its type",
            remedy='Load {"Person": table} instead of the table alone, or pass type="Person".',
        )
    return type_name


def as_table(
    source: Any, owner: NodeType | EdgeType, columns: Mapping[str, str] | None = None
) -> pa.Table:
    """A source of rows of one type as an Arrow table; ``columns`` maps names to properties."""
    if isinstance(source, pa.Table):
        return source
    try:
        if hasattr(source, "__arrow_c_stream__"):
            table = pa.RecordBatchReader.from_stream(source).read_all()
        elif hasattr(source, "__arrow_c_array__"):
            table = pa.Table.from_batches([pa.record_batch(source)])
        else:
            table = interchange.from_dataframe(source)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as problem:
        kind, why = type(source).__name__, str(problem).partition("\n")[0][:200]
        raise InvalidInput(
            f"a {kind} cannot be read as a table: {why}",
            remedy="Give a frame whose columns each have values of one type.",
        ) from problem
    labels = [name for name in table.column_names if name.startswith(_INDEX)]
    table = table.drop_columns(labels)
    return _with_integers(table, owner, columns or {})


def _with_integers(
    table: pa.Table, owner: NodeType | EdgeType, columns: Mapping[str, str]
) -> pa.Table:
    """Cast whole floats to integers where the property is an integer.

    pandas converts integers with missing values to floats.
    """
    for at, name in enumerate(table.column_names):
        declared = owner.properties.get(columns.get(name, name))
        wanted = declared is not None and declared.type.is_single
        if not (wanted and declared and declared.type.scalar.family == "integer"):
            continue
        if pa.types.is_floating(table[name].type):
            try:
                table = table.set_column(at, name, table[name].cast(pa.int64()))
            except pa.ArrowInvalid:
                continue  # the values are read one by one, which reports each that is wrong
    return table
