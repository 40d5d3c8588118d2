"""Constraints on edges: existence of both endpoints, no dangling edges, cardinality."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints.image import Image, StoredTypes, TypeImage, empty_ids, present, without
from omnigraph.constraints.violations import COUNT, Report, Violation
from omnigraph.lang.schema import DST, SRC, AcceptedSchema, EdgeCardinality, EdgeType
from omnigraph.storage.lance.arrays import as_array

_NOTHING = TypeImage()


def ends(edge: EdgeType) -> tuple[tuple[str, str], tuple[str, str]]:
    """The endpoint columns of an edge type, each with the type key of its nodes."""
    return ((SRC, f"node:{edge.source}"), (DST, f"node:{edge.target}"))


def incident(schema: AcceptedSchema, node_key: str) -> Iterator[tuple[EdgeType, str]]:
    """The edge types with an endpoint of this node type, and the endpoint column."""
    for edge in schema.edges.values():
        for column, key in ends(edge):
            if key == node_key:
                yield edge, column


def check_written_edges(edge: EdgeType, image: Image, stored: StoredTypes, report: Report) -> None:
    """Both endpoints of every written edge exist after the write."""
    rows = image[edge.key].final if edge.key in image else None
    if rows is None or not rows.num_rows:
        return
    for column, node_key in ends(edge):
        nodes = image.get(node_key, _NOTHING)
        unsettled = image[edge.key].unsettled([column])
        check_end(edge, column, node_key, rows, nodes, stored, report, unsettled)


def check_end(
    edge: EdgeType,
    column: str,
    node_key: str,
    rows: pa.Table,
    nodes: TypeImage,
    stored: StoredTypes,
    report: Report,
    unsettled: Collection[str] = (),
) -> None:
    """One endpoint of written edges; ``nodes`` is the change of the node type.

    Rows may stand for several edges (column ``COUNT``), of which the others are only counted.
    """
    wanted = as_array(rows[column]).unique()
    missing = without(wanted, _existing(nodes, node_key, wanted, stored))
    if not len(missing):
        return
    marked = pc.indices_nonzero(pc.is_in(rows[column], value_set=missing))
    maybe = _uncertain(nodes)

    def orphan(at: int) -> Violation:
        id, end = rows["id"][at].as_py(), rows[column][at].as_py()
        depends = _depends((edge.key, id, unsettled), (node_key, end, maybe))
        return _orphan(edge, column, node_key, id, end, "", depends, report.place(rows, at))

    total = len(marked)
    if COUNT in rows.column_names:
        total = pc.sum(pc.fill_null(rows[COUNT].take(marked), 1)).as_py() or 0
    report.extend((orphan(at) for at in marked.to_pylist()), total)


def _existing(nodes: TypeImage, node_key: str, wanted: pa.Array, stored: StoredTypes) -> pa.Array:
    """The referenced node ids that exist after the write."""
    open_ = without(wanted, nodes.written_ids)
    written = without(nodes.written_ids, nodes.uncertain)
    if nodes.replaces_all:
        return written
    found = without(present(stored, node_key, open_), nodes.removed)
    return pa.concat_arrays([written, found])


def _orphan(
    edge: EdgeType,
    column: str,
    node_key: str,
    id: str,
    end: str,
    why: str,
    depends: tuple[tuple[str, str], ...],
    place: tuple[str | None, int | None] = (None, None),
) -> Violation:
    name = node_key.partition(":")[2]
    message = f"edge {edge.name}: {column} {end!r} not found in {name}{why}"
    related = ((node_key, end),)
    return Violation(
        "endpoint", message, edge.key, id, column, *place, related=related, depends_on=depends
    )


def _uncertain(nodes: TypeImage) -> frozenset[str]:
    return frozenset() if nodes.uncertain is None else frozenset(nodes.uncertain.to_pylist())


def _depends(*entities: tuple[str, str, Collection[str]]) -> tuple[tuple[str, str], ...]:
    """The entities whose outcome is undecided."""
    return tuple((key, id) for key, id, open_ids in entities if id in open_ids)


def check_deleted_nodes(
    schema: AcceptedSchema, node_key: str, image: Image, stored: StoredTypes, report: Report
) -> None:
    """No remaining edge points to a deleted node."""
    nodes = image[node_key]
    gone = deleted_ids(nodes, node_key, stored)
    if nodes.uncertain is not None:
        gone = pa.concat_arrays([gone, nodes.uncertain])
    if not len(gone):
        return
    for edge, column in incident(schema, node_key):
        change = image.get(edge.key, _NOTHING)
        if not change.replaces_all and stored.count(edge.key):
            maybe = _uncertain(nodes)
            check_dangling_edges(edge, column, node_key, gone, change, stored, report, maybe)


def check_dangling_edges(
    edge: EdgeType,
    column: str,
    node_key: str,
    gone: pa.Array,
    change: TypeImage,
    stored: StoredTypes,
    report: Report,
    uncertain: Collection[str] = (),
) -> None:
    """No remaining stored edge of one type has a deleted node at this endpoint."""
    found = stored.matching(edge.key, column, gone, ["id", column])
    kept = without(as_array(found["id"]), change.superseded)
    left = found.filter(_is_in(found["id"], kept))

    def orphan(id: str, end: str) -> Violation:
        why, depends = f": edge {id!r} still refers to it", _depends((node_key, end, uncertain))
        return _orphan(edge, column, node_key, id, end, why, depends)

    report.extend((orphan(id, end) for id, end in _pairs(left, column)), left.num_rows)


def deleted_ids(nodes: TypeImage, node_key: str, stored: StoredTypes) -> pa.Array:
    """The stored ids of a type that do not exist after the write."""
    if nodes.replaces_all:
        if not stored.count(node_key):
            return empty_ids()
        return without(as_array(stored.columns(node_key, ["id"])["id"]), nodes.written_ids)
    return empty_ids() if nodes.removed is None else without(nodes.removed, nodes.written_ids)


def check_cardinality(edge: EdgeType, image: Image, stored: StoredTypes, report: Report) -> None:
    """``@card``: the number of edges of every source that the write touches and does not delete."""
    change = image.get(edge.key)
    if change is None or edge.cardinality == EdgeCardinality():
        return
    replaced = _replaced_edges(edge, change, stored)
    sources = _touched(edge, image, change, replaced, stored)
    if not len(sources):
        return
    nodes = image.get(f"node:{edge.source}", _NOTHING)
    undecided = _undecided_edges(edge, change, nodes)
    check_counts(edge, sources, _edges_after(edge, change, sources, stored), report, undecided)


@dataclass(frozen=True, slots=True)
class UndecidedEdges:
    """Undecided edges by ``src``, and the undecided entities on which each count depends."""

    sources: pa.Array
    depends_on: Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Values, each of which stands for as many equal ones as its count says; null means one."""

    values: pa.Array
    counts: pa.Array

    @classmethod
    def of(cls, rows: pa.Table, column: str) -> CountedValues:
        """The values of a column, counted by the column ``COUNT`` if there is one."""
        values = as_array(rows[column])
        if COUNT in rows.column_names:
            return cls(values, pc.fill_null(as_array(rows[COUNT]), 1))
        return cls(values, pa.repeat(1, len(values)))


def check_counts(
    edge: EdgeType,
    sources: pa.Array,
    columns: Iterable[pa.Array | CountedValues],
    report: Report,
    undecided: UndecidedEdges | None = None,
) -> None:
    """Check the number of edges of these sources, counted over all ``src`` columns."""
    low, high = edge.cardinality.low, edge.cardinality.high
    fewest = sum((_occurrences(column, sources) for column in columns), np.zeros(len(sources), int))
    most = fewest if undecided is None else fewest + _occurrences(undecided.sources, sources)
    above = most > (most if high is None else high)
    wrong = np.flatnonzero((fewest < low) | above)
    counts = np.where(above, most, fewest)[wrong].tolist()
    for source, count in sorted(
        zip(sources.take(pa.array(wrong)).to_pylist(), counts, strict=True)
    ):
        bound = f"max {high}" if high is not None and count > high else f"min {low}"
        problem = f"source {source!r} has {count} edges ({bound})"
        message = f"@card violation on edge {edge.name}: {problem}"
        depends = () if undecided is None else undecided.depends_on.get(source, ())
        report.add(Violation("cardinality", message, edge.key, source, depends_on=depends))


def _occurrences(column: pa.Array | CountedValues, sources: pa.Array) -> Any:
    if isinstance(column, CountedValues):
        found = pc.index_in(column.values, value_set=sources)
        counts = column.counts.filter(found.is_valid()).to_numpy()
        weighted = np.bincount(found.drop_null().to_numpy(), counts, minlength=len(sources))
        return weighted.astype(np.int64)
    positions = pc.index_in(column, value_set=sources).drop_null().to_numpy()
    return np.bincount(positions, minlength=len(sources))


def _undecided_edges(edge: EdgeType, change: TypeImage, nodes: TypeImage) -> UndecidedEdges | None:
    """The undecided edges of each source, each once per source."""
    node_key = f"node:{edge.source}"
    depends: dict[str, list[tuple[str, str]]] = {}
    found: list[str] = []
    unsettled = change.unsettled([SRC])
    if unsettled and change.final is not None:
        chosen = pa.array(sorted(unsettled), pa.string())
        rows = change.final.filter(pc.is_in(change.final["id"], value_set=chosen))
        pairs = set(zip(rows["id"].to_pylist(), rows[SRC].to_pylist(), strict=True))
        for id, source in sorted(pairs):
            found.append(source)
            depends.setdefault(source, []).append((edge.key, id))
    for id in sorted(_uncertain(nodes)):
        depends.setdefault(id, []).append((node_key, id))
    if not depends:
        return None
    entities = {source: tuple(items) for source, items in depends.items()}
    return UndecidedEdges(pa.array(found, pa.string()), entities)


def _replaced_edges(edge: EdgeType, change: TypeImage, stored: StoredTypes) -> pa.Array:
    """The sources that stored edges had before this write replaced or removed them."""
    if change.replaces_all or not stored.count(edge.key) or not len(change.superseded):
        return empty_ids()
    found = stored.matching(edge.key, "id", change.superseded, ["id", SRC])
    return as_array(found[SRC])


def _touched(
    edge: EdgeType, image: Image, change: TypeImage, replaced: pa.Array, stored: StoredTypes
) -> pa.Array:
    written = empty_ids() if change.final is None else as_array(change.final[SRC])
    sources = pa.concat_arrays([written, replaced]).unique()
    key = f"node:{edge.source}"
    return without(sources, deleted_ids(image[key], key, stored) if key in image else None)


def _edges_after(
    edge: EdgeType, change: TypeImage, sources: pa.Array, stored: StoredTypes
) -> Iterator[pa.Array]:
    """The ``src`` columns of all edges of these sources that certainly exist after the write."""
    if change.final is not None and change.undecided is None:
        yield as_array(change.final[SRC])
    elif change.final is not None:
        unsettled = change.unsettled([SRC])
        ids = change.final["id"].to_pylist()
        certain = dict(zip(ids, change.final[SRC].to_pylist(), strict=True))
        yield pa.array([s for id, s in certain.items() if id not in unsettled], pa.string())
    if not change.replaces_all and stored.count(edge.key):
        found = stored.matching(edge.key, SRC, sources, ["id", SRC])
        kept = without(as_array(found["id"]), change.superseded)
        yield as_array(found.filter(_is_in(found["id"], kept))[SRC])


def _pairs(edges: pa.Table, column: str) -> list[tuple[str, str]]:
    """Pairs of edge id and endpoint, in the order of ids."""
    return sorted(zip(edges["id"].to_pylist(), edges[column].to_pylist(), strict=True))


def _is_in(column: pa.ChunkedArray, ids: pa.Array) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=ids)
