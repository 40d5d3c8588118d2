"""Indexes: which ones a schema asks for, and building those that are missing or behind.

All indexes of a branch are built in one publish that adds no graph commit. Building changes how
long things take, never what they answer. A type that a branch has not written itself is read
through its parent's indexes and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.commit.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.commit.transaction import WriteTransaction
from omnigraph.ids import new_ulid
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import load_schema
from omnigraph.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.storage.indexing import IndexSpec, stage_indexes
from omnigraph.storage.tables import KIND_PROPERTY, OPERATION_PROPERTY, PinnedTable

INFO: Final = WriteInfo("index_build", makes_commit=False)

IndexState = Literal["built", "current", "empty", "pending", "inherited"]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What became of one index."""

    type_key: str
    property: str
    kind: str
    state: IndexState

    def to_json(self) -> dict[str, str]:
        return {
            "type_key": self.type_key,
            "property": self.property,
            "kind": self.kind,
            "state": self.state,
        }


def wanted_indexes(kind: NodeType | EdgeType) -> tuple[IndexSpec, ...]:
    """The indexes of a type: ids and ends always, then what is declared for single properties."""
    found = [IndexSpec("id", "BTREE")]
    if isinstance(kind, EdgeType):
        found += [IndexSpec("src", "BTREE"), IndexSpec("dst", "BTREE")]
    declared = dict.fromkeys(
        columns[0] for columns in (*kind.indexes, *kind.unique) if len(columns) == 1
    )
    for name in sorted(
        {*declared, *(kind.key_properties if len(kind.key_properties) == 1 else ())}
    ):
        found += _property_indexes(kind, name)
    return tuple(found)


def _property_indexes(kind: NodeType | EdgeType, name: str) -> Iterator[IndexSpec]:
    type_ = kind.properties[name].type
    if type_.is_vector:
        yield IndexSpec(name, "IVF_FLAT", (("metric", "l2"), ("num_partitions", 1)))
    elif type_.is_single:
        yield IndexSpec(name, "BTREE")
        searched = (name,) in kind.indexes and name not in kind.key_properties
        if type_.is_plain_string and searched:
            yield IndexSpec(name, "INVERTED", (("with_position", True),))


def build_indexes(
    repository: Repository, transaction: WriteTransaction, branch: Branch
) -> list[IndexReport]:
    """Build what is missing or does not cover every row, as one publish."""
    transaction.enter(branch)
    snapshot = repository.snapshot(branch)
    state = repository.manifest(branch).warm()
    schema: AcceptedSchema = load_schema(state, snapshot.schema_hash)
    operation_id = new_ulid()
    properties = {OPERATION_PROPERTY: operation_id, KIND_PROPERTY: INFO.kind}
    reports: list[IndexReport] = []
    tables: list[PreparedTable] = []
    for kind in schema.types():
        pin = snapshot.pin(kind.key)
        table = repository.tables.open(pin.ref)
        wanted = wanted_indexes(kind)
        own = pin.owner == branch.incarnation
        states = {spec: _state(table, spec, own) for spec in wanted}
        todo = [spec for spec, found in states.items() if found == "built"]
        if todo:
            tables.append(PreparedTable(pin, stage_indexes(table, todo, properties)))
        reports += [
            IndexReport(kind.key, spec.column, spec.kind, found) for spec, found in states.items()
        ]
    if tables:
        transaction.commit(PreparedWrite(operation_id, snapshot, INFO, tuple(tables)))
    return reports


def _state(table: PinnedTable, spec: IndexSpec, own: bool) -> IndexState:
    """What there is to do for an index; ``built`` means it has to be."""
    if not own:
        return "inherited"
    if not table.rows:
        return "empty"
    if _covered(table, spec) == set(table.fragments):
        return "current"
    if spec.kind.startswith("IVF") and not _has_value(table, spec.column):
        return "pending"
    return "built"


def _covered(table: PinnedTable, spec: IndexSpec) -> set[int]:
    """The fragments that an index knows."""
    found: set[int] = set()
    for index in table.dataset.describe_indices():
        if index.name == spec.name:
            for segment in index.segments:
                found |= {int(fragment) for fragment in segment.fragment_ids}
    return found


def _has_value(table: PinnedTable, column: str) -> bool:
    filter_: Any = f"`{column}` IS NOT NULL"
    return bool(table.dataset.count_rows(filter=filter_))
