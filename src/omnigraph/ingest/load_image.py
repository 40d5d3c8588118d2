"""What a load in process writes on one snapshot: the image of an upsert or of a merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.constraints import NULLED, Image, Report, TypeImage
from omnigraph.constraints.image import empty_ids
from omnigraph.constraints.row_checks import check_required
from omnigraph.ingest.row_collector import places
from omnigraph.ingest.upsert import Applied, apply_rows, equal_edges, replaced_rows
from omnigraph.lang.schema import AcceptedSchema, EdgeType
from omnigraph.prepare.entity_rows import with_defaults
from omnigraph.prepare.preparer import KnownRows
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.storage.lance.arrays import as_array


@dataclass(slots=True)
class LoadImage:
    """The rows to write by type key, the row ids that they replace, and what is lost by that."""

    image: Image
    known: dict[str, KnownRows] = field(default_factory=dict)
    values_nulled: int = 0
    edges_repeated: int = 0


def upsert_image(
    schema: AcceptedSchema,
    image: Image,
    has_id: Mapping[str, Any],
    stored: StoredSnapshot,
    report: Report,
) -> LoadImage:
    """The rows of an upsert as whole entities: those that are new or change.

    ``has_id`` marks the rows that came with an id, of types without a key.
    """
    found: dict[str, TypeImage] = {}
    known: dict[str, KnownRows] = {}
    for key, change in image.items():
        owner, rows = schema.type(key), change.rows
        assert rows is not None
        fresh = rows.slice(0, 0)
        if key in has_id and isinstance(owner, EdgeType):
            rows, fresh = rows.filter(has_id[key]), rows.filter(pc.invert(has_id[key]))
        applied = apply_rows(owner, rows, stored.table(key))
        is_new = pc.is_null(applied.row_ids)
        check_required(owner, applied.rows.filter(is_new), report)
        written, row_ids = applied.rows, applied.row_ids
        if fresh.num_rows:
            assert isinstance(owner, EdgeType)
            added = _unmatched(owner, fresh, applied, stored)
            written = pa.concat_tables([written, added.cast(written.schema)])
            row_ids = pa.concat_arrays([row_ids, pa.nulls(added.num_rows, row_ids.type)])
            order = pa.array(np.argsort(places(written), kind="stable"))
            written, row_ids = written.take(order), row_ids.take(order)
        found[key] = TypeImage(written, fresh=row_ids.null_count == len(row_ids))
        known[key] = KnownRows(row_ids, empty_row_ids())
    return LoadImage(found, known)


def _unmatched(
    edge: EdgeType, fresh: pa.Table, applied: Applied, stored: StoredSnapshot
) -> pa.Table:
    """The edges without an id that equal no other edge."""
    fresh = with_defaults(edge, fresh).drop_columns([NULLED])
    others = pa.concat_tables([applied.rows, applied.same.cast(applied.rows.schema)])
    table, superseded = stored.table(edge.key), as_array(applied.rows["id"])
    return fresh.filter(pa.array(np.invert(equal_edges(edge, fresh, others, table, superseded))))


def merge_image(
    schema: AcceptedSchema, image: Image, has_id: Mapping[str, Any], stored: StoredSnapshot
) -> LoadImage:
    """The rows of a merge, which replace whole entities.

    Counts stored values that become null because they were not given, and new edges without an id
    that equal another edge.
    """
    result = LoadImage(image)
    for key, change in image.items():
        owner, final = schema.type(key), change.final
        if final is None or not final.num_rows:
            continue
        table = stored.table(key)
        if table.rows and not change.fresh:
            replaced = replaced_rows(owner, final, table)
            result.known[key] = KnownRows(replaced.row_ids, empty_row_ids())
            result.values_nulled += replaced.values_nulled
        if isinstance(owner, EdgeType):
            result.edges_repeated += _repeated(owner, change, has_id[key], stored)
    return result


def _repeated(edge: EdgeType, change: TypeImage, has_id: Any, stored: StoredSnapshot) -> int:
    """The number of new edges without an id that equal another edge."""
    rows = change.rows
    assert rows is not None
    fresh = rows.filter(pc.invert(has_id))
    if not fresh.num_rows:
        return 0
    others, superseded = None, empty_ids()
    if fresh.num_rows < rows.num_rows:
        assert change.final is not None
        ids = as_array(rows.filter(has_id)["id"])
        others = change.final.filter(pc.is_in(change.final["id"], value_set=ids))
        superseded = ids
    return int(equal_edges(edge, fresh, others, stored.table(edge.key), superseded).sum())


def empty_row_ids() -> pa.Array:
    return pa.array([], pa.uint64())
