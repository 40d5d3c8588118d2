"""The evaluator: every constraint of a schema, over the final image of a write.

Order: rules about single entities; then ids and uniqueness; then the ends of edges; then
cardinality. Inside each step types come in the order of their type keys and entities in the order
they were written, so the same write always gives the same report.
"""

from __future__ import annotations

from omnigraph.constraints.edge_checks import (
    check_cardinality,
    check_deleted_nodes,
    check_written_edges,
)
from omnigraph.constraints.image import Image, StoredTypes
from omnigraph.constraints.row_checks import check_required, check_values
from omnigraph.constraints.unique_checks import check_ids, check_unique
from omnigraph.constraints.violations import Report
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType


def evaluate(
    schema: AcceptedSchema,
    image: Image,
    stored: StoredTypes,
    report: Report,
    *,
    cascaded: bool = False,
    rows_checked: bool = False,
    ids_known: bool = False,
) -> None:
    """Add every violation to ``report``.

    ``cascaded``: the image already removes the edges of removed nodes. ``rows_checked``: the rules
    about single entities were checked before and their violations are in ``report``, so that rows
    need only the columns of keys. ``ids_known``: every row has an id, even if a required value is
    missing.
    """
    types = [schema.type(key) for key in sorted(image)]
    for owner in types:
        rows = image[owner.key].rows
        if rows is not None and not rows_checked:
            check_required(owner, rows, report)
            check_values(owner, rows, report)
    if "required" in report.rules and not ids_known:
        return  # without the values of their keys the rows have no ids to check
    for owner in types:
        check_ids(owner, image[owner.key], stored, report)
        check_unique(owner, image[owner.key], stored, report)
    for owner in types:
        if isinstance(owner, EdgeType):
            check_written_edges(owner, image, stored, report)
    for owner in types:
        if isinstance(owner, NodeType) and not cascaded:
            check_deleted_nodes(schema, owner.key, image, stored, report)
    for owner in types:
        if isinstance(owner, EdgeType):
            check_cardinality(owner, image, stored, report)
