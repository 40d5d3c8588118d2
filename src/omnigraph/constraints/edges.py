"""Rules about edges and the nodes at their ends: existence in both directions, cardinality."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from omnigraph.constraints.image import (
    Image,
    StoredTypes,
    TypeImage,
    empty_ids,
    present,
    without,
)
from omnigraph.constraints.violations import Report, Violation
from omnigraph.schema import DST, SRC, AcceptedSchema, Cardinality, EdgeType
from omnigraph.storage.arrays import as_array

if TYPE_CHECKING:
    import pyarrow as pa

_NOTHING = TypeImage()


def ends(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    """The endpoint columns of an edge type, each with the type key of its nodes."""
    return ((SRC, f"node:{edge.source}"), (DST, f"node:{edge.target}"))


def incident(schema: AcceptedSchema, node_key: str) -> Iterator[tuple[EdgeType, str]]:
    """The edge types, with the column, whose ends are nodes of this type."""
    for edge in schema.edges.values():
        for column, key in ends(edge):
            if key == node_key:
                yield edge, column


def check_written_edges(edge: EdgeType, image: Image, stored: StoredTypes, report: Report) -> None:
    """Both ends of every written edge exist when the write is done."""
    rows = image[edge.key].final if edge.key in image else None
    if rows is None or not rows.num_rows:
        return
    for column, node_key in ends(edge):
        nodes = image.get(node_key, _NOTHING)
        check_end(edge, column, node_key, rows, nodes, stored, report)


def check_end(
    edge: EdgeType,
    column: str,
    node_key: str,
    rows: pa.Table,
    nodes: TypeImage,
    stored: StoredTypes,
    report: Report,
) -> None:
    """One end of written edges; ``nodes`` is what the write does to the nodes it points to."""
    import pyarrow.compute as pc

    wanted = as_array(rows[column]).unique()
    missing = without(wanted, _existing(nodes, node_key, wanted, stored))
    if not len(missing):
        return
    marked = pc.indices_nonzero(pc.is_in(rows[column], value_set=missing))
    report.extend(
        (_orphan(edge, column, node_key, rows, at, report) for at in marked.to_pylist()),
        len(marked),
    )


def _existing(nodes: TypeImage, node_key: str, wanted: pa.Array, stored: StoredTypes) -> pa.Array:
    """Those of the wanted node ids that exist when the write is done."""
    import pyarrow as pa

    open_ = without(wanted, nodes.written_ids)
    if nodes.replaces_all:
        return nodes.written_ids
    found = without(present(stored, node_key, open_), nodes.removed)
    return pa.concat_arrays([nodes.written_ids, found])


def _orphan(
    edge: EdgeType, column: str, node_key: str, rows: pa.Table, at: int, report: Report
) -> Violation:
    end, id = rows[column][at].as_py(), rows["id"][at].as_py()
    name = node_key.partition(":")[2]
    message = f"edge {edge.name}: {column} {end!r} not found in {name}"
    return Violation("endpoint", message, edge.key, id, column, *report.place(rows, at))


def check_vanished_nodes(
    schema: AcceptedSchema, node_key: str, image: Image, stored: StoredTypes, report: Report
) -> None:
    """No edge that stays points to a node that goes away."""
    gone = vanished(image[node_key], node_key, stored)
    if not len(gone):
        return
    for edge, column in incident(schema, node_key):
        change = image.get(edge.key, _NOTHING)
        if not change.replaces_all and stored.count(edge.key):
            check_left_behind(edge, column, node_key, gone, change, stored, report)


def check_left_behind(
    edge: EdgeType,
    column: str,
    node_key: str,
    gone: pa.Array,
    change: TypeImage,
    stored: StoredTypes,
    report: Report,
) -> None:
    """No stored edge of one type that stays has one of the gone nodes at this end."""
    found = stored.matching(edge.key, column, gone, ["id", column])
    kept = without(as_array(found["id"]), change.superseded)
    left = found.filter(_is_in(found["id"], kept))
    name = node_key.partition(":")[2]
    report.extend(
        (
            Violation(
                "endpoint",
                f"edge {edge.name}: {column} {end!r} not found in {name}: "
                f"edge {id!r} still needs it",
                edge.key,
                id,
                column,
            )
            for id, end in _pairs(left, column)
        ),
        left.num_rows,
    )


def vanished(nodes: TypeImage, node_key: str, stored: StoredTypes) -> pa.Array:
    """The stored ids of a type that no longer exist when the write is done."""
    if nodes.replaces_all:
        if not stored.count(node_key):
            return empty_ids()
        return without(as_array(stored.columns(node_key, ["id"])["id"]), nodes.written_ids)
    return empty_ids() if nodes.removed is None else without(nodes.removed, nodes.written_ids)


def check_cardinality(edge: EdgeType, image: Image, stored: StoredTypes, report: Report) -> None:
    """The number of edges of every source that the write touches, unless the source goes away."""
    change = image.get(edge.key)
    if change is None or edge.cardinality == Cardinality():
        return
    replaced = _replaced_edges(edge, change, stored)
    sources = _touched(edge, image, change, replaced, stored)
    if not len(sources):
        return
    check_counts(edge, sources, _edges_after(edge, change, sources, stored), report)


def check_counts(
    edge: EdgeType, sources: pa.Array, columns: Iterable[pa.Array], report: Report
) -> None:
    """Every one of these sources occurs as often as is allowed in the ``src`` columns together."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = edge.cardinality.low, edge.cardinality.high
    total = np.zeros(len(sources), dtype=np.int64)
    for column in columns:
        positions = pc.index_in(column, value_set=sources).drop_null().to_numpy()
        total += np.bincount(positions, minlength=len(sources))
    wrong = np.flatnonzero((total < low) | (total > (total if high is None else high)))
    offenders = sources.take(pa.array(wrong)).to_pylist()
    for source, count in sorted(zip(offenders, total[wrong].tolist(), strict=True)):
        bound = f"max {high}" if high is not None and count > high else f"min {low}"
        problem = f"source {source!r} has {count} edges ({bound})"
        message = f"@card violation on edge {edge.name}: {problem}"
        report.add(Violation("cardinality", message, edge.key, source))


def _replaced_edges(edge: EdgeType, change: TypeImage, stored: StoredTypes) -> pa.Array:
    """The sources that stored edges had before this write replaced or removed them."""
    if change.replaces_all or not stored.count(edge.key) or not len(change.superseded):
        return empty_ids()
    found = stored.matching(edge.key, "id", change.superseded, ["id", SRC])
    return as_array(found[SRC])


def _touched(
    edge: EdgeType, image: Image, change: TypeImage, replaced: pa.Array, stored: StoredTypes
) -> pa.Array:
    import pyarrow as pa

    written = empty_ids() if change.final is None else as_array(change.final[SRC])
    sources = pa.concat_arrays([written, replaced]).unique()
    key = f"node:{edge.source}"
    return without(sources, vanished(image[key], key, stored) if key in image else None)


def _edges_after(
    edge: EdgeType, change: TypeImage, sources: pa.Array, stored: StoredTypes
) -> Iterator[pa.Array]:
    """The ``src`` columns of all edges of these sources when the write is done."""
    if change.final is not None:
        yield as_array(change.final[SRC])
    if not change.replaces_all and stored.count(edge.key):
        found = stored.matching(edge.key, SRC, sources, ["id", SRC])
        kept = without(as_array(found["id"]), change.superseded)
        yield as_array(found.filter(_is_in(found["id"], kept))[SRC])


def _pairs(edges: pa.Table, column: str) -> list[tuple[str, str]]:
    """The ids of edges with one of their ends, in the order of the ids."""
    return sorted(zip(edges["id"].to_pylist(), edges[column].to_pylist(), strict=True))


def _is_in(column: pa.ChunkedArray, ids: pa.Array) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.is_in(column, value_set=ids)
