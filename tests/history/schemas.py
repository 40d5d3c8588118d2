"""A schema change published by hand: what the feed sees of one."""

from __future__ import annotations

from dataclasses import replace

from omnigraph import Graph
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.rows import MAIN, Commit, TablePin
from omnigraph.catalog.schemas import schema_id, schema_row
from omnigraph.lang.schema import accept_schema
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.arrow_schema import table_schema
from omnigraph.storage.paths import table_path
from tests.graphs import repository


def publish_schema(graph: Graph, text: str) -> str:
    """Publish a schema as one commit; returns its id. New types get empty tables."""
    view = repository(graph)
    old = graph.schema()
    schema = accept_schema(text, previous=old, mint=new_ulid)
    known = {owner.incarnation: owner.key for owner in old.types()}
    pins, gone = [], []
    for owner in schema.types():
        before = known.get(owner.incarnation)
        if before is not None and before != owner.key:
            pins.append(replace(graph.snapshot().pin(before), key=owner.key))
            gone.append(f"table:{before}")
        elif before is None:
            path = table_path(owner.key, owner.incarnation)
            table = view.tables.create(path, table_schema(owner), {})
            creation = str(view.tables.transaction(table.ref).uuid)
            pins.append(
                TablePin(owner.key, table.ref, 0, owner.type_id, owner.incarnation, creation)
            )
    rows = [row for pin in pins for row in (pin.to_row(), pin.to_version_row())]
    operation = new_ulid()
    view.main.publish(
        Publication(
            operation,
            MAIN,
            commit=Commit(operation, MAIN, "schema", view.clock.now_us()),
            put=(schema_row(schema), *rows),
            drop=tuple(gone),
            schema_hash=schema_id(schema),
        )
    )
    return operation
