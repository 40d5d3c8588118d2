"""Attribution of a merge: which merged commit inserted, updated or deleted which entity.

A merge stores two things beside its commit. A history row of the target's manifest, ``merge:<id>``,
names the start of the merged lineage and, per type, the changes that most of its entities have in
common. An object, ``__history/<id>.attribution``, lists the entities with other changes; it is
absent when there are none. Both outlive the merged branch and its states. Entities are
listed by a 64-bit digest of their ids, so that no object holds an id or a value. The object is
written before the publish that refers to it and never changes, except that a purge removes rows.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from omnigraph.catalog.history.timeline import Timeline
from omnigraph.catalog.rows import Row, RowKind
from omnigraph.errors import CorruptData, ObjectNotFound
from omnigraph.storage.failpoints import hit
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.storage.paths import HISTORY_PREFIX

_SUFFIX: Final = ".attribution"
_MAGIC: Final = b"OGHA\x01"
_LENGTH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class AttributedChange:
    """The change of one entity by one commit: operation and properties."""

    commit_id: str
    op: str | None
    """insert, update or delete; None when the history needed to tell was reclaimed."""
    properties: tuple[str, ...] | None = None
    """Property ids, and names of endpoints. None means all properties of an insertion, or an
    unknown set of an update. An insertion names a set when the target already had the entity."""

    def may_set(self, name: str) -> bool:
        return self.op != "delete" and (self.properties is None or name in self.properties)

    def to_json(self) -> list[Any]:
        return [self.commit_id, self.op, self.properties]

    @classmethod
    def from_json(cls, data: list[Any]) -> AttributedChange:
        commit_id, op, properties = data
        return cls(commit_id, op, None if properties is None else tuple(properties))


AttributedChanges = tuple[AttributedChange, ...]
"""All changes that merged commits made to an entity, oldest first."""


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """The history row of a merge."""

    merge_id: str
    before: str | None
    """The newest commit of the merged lineage that is an ancestor of the target."""
    usual: Mapping[str, AttributedChanges] = field(default_factory=dict)
    """By incarnation of a type: the changes of its entities that are not listed."""
    has_listed: bool = False

    @property
    def path(self) -> str:
        return object_path(self.merge_id)

    def to_row(self) -> Row:
        usual = {key: [one.to_json() for one in changes] for key, changes in self.usual.items()}
        data = {"before": self.before, "usual": usual, "listed": self.has_listed}
        return Row(f"merge:{self.merge_id}", RowKind.MERGE, data)

    @classmethod
    def from_row(cls, row: Row) -> MergeRecord:
        data = row.metadata
        usual = {
            key: tuple(AttributedChange.from_json(change) for change in changes)
            for key, changes in data["usual"].items()
        }
        return cls(row.object_id.partition(":")[2], data["before"], usual, data["listed"])


@dataclass(frozen=True, slots=True)
class AttributionList:
    """The entities of an attribution object, each with a type, a digest and its changes."""

    types: tuple[str, ...]
    changes: tuple[AttributedChanges, ...]
    type_index: np.ndarray[Any, Any]
    digests: np.ndarray[Any, Any]
    change_index: np.ndarray[Any, Any]

    @classmethod
    def of(cls, listed: Mapping[str, Mapping[int, AttributedChanges]]) -> AttributionList:
        """From changes by incarnation of the type and digest of the entity."""
        positions: dict[AttributedChanges, int] = {}
        rows = [
            (type_index, digest, positions.setdefault(changes, len(positions)))
            for type_index, entities in enumerate(listed.values())
            for digest, changes in sorted(entities.items())
        ]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        kinds = (np.int32, np.uint64, np.int32)
        arrays = [np.array(c, dtype=kind) for c, kind in zip(columns, kinds, strict=True)]
        return cls(tuple(listed), tuple(positions), *arrays)

    def __len__(self) -> int:
        return len(self.digests)

    def find(self, incarnation: str, digest: int) -> AttributedChanges | None:
        rows = np.flatnonzero(self._rows_of(incarnation, [digest]))
        return self.changes[self.change_index[rows[0]]] if len(rows) else None

    def without(self, gone: Mapping[str, Iterable[str]]) -> AttributionList:
        """A copy without these entities; ``gone`` maps incarnations of types to entity ids."""
        removed = np.zeros(len(self), dtype=bool)
        for incarnation, ids in gone.items():
            removed |= self._rows_of(incarnation, [digest_of(id) for id in ids])
        kept = [column[~removed] for column in (self.type_index, self.digests, self.change_index)]
        return AttributionList(self.types, self.changes, *kept)

    def _rows_of(self, incarnation: str, digests: list[int]) -> np.ndarray[Any, Any]:
        if incarnation not in self.types:
            return np.zeros(len(self), dtype=bool)
        has_digest = np.isin(self.digests, np.array(digests, dtype=np.uint64))
        return np.asarray(has_digest & (self.type_index == self.types.index(incarnation)))

    def to_bytes(self) -> bytes:
        changes = [[change.to_json() for change in item] for item in self.changes]
        header = json.dumps({"types": self.types, "deeds": changes}).encode()
        packed = [
            zlib.compress(part)
            for part in (
                header,
                self.type_index.astype("<i4").tobytes(),
                self.digests.astype("<u8").tobytes(),
                self.change_index.astype("<i4").tobytes(),
            )
        ]
        return _MAGIC + b"".join(len(p).to_bytes(_LENGTH_BYTES, "little") + p for p in packed)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> AttributionList:
        try:
            if not data.startswith(_MAGIC):
                raise ValueError("unknown header")
            offset, parts = len(_MAGIC), []
            while offset < len(data):
                size = int.from_bytes(data[offset : offset + _LENGTH_BYTES], "little")
                offset += _LENGTH_BYTES
                parts.append(zlib.decompress(data[offset : offset + size]))
                offset += size
            header, *columns = parts
            body = json.loads(header)
            arrays = [
                np.frombuffer(column, kind)
                for column, kind in zip(columns, ("<i4", "<u8", "<i4"), strict=True)
            ]
            if len({len(array) for array in arrays}) != 1:
                raise ValueError("columns of different lengths")
            changes = tuple(tuple(map(AttributedChange.from_json, item)) for item in body["deeds"])
            return cls(tuple(body["types"]), changes, *arrays)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise CorruptData(
                f"{path} is damaged: {error}",
                remedy="Restore the file from a backup; until then blame names the merge itself.",
                details={"path": path},
            ) from error


@dataclass(frozen=True, slots=True)
class Attribution:
    """The attribution of one merge."""

    record: MergeRecord
    listed: AttributionList | None = None

    def changes_of(self, incarnation: str, id: str) -> AttributedChanges:
        """The changes of merged commits to an entity that the merge changed in its target."""
        changes = None if self.listed is None else self.listed.find(incarnation, digest_of(id))
        if changes is not None:
            return changes
        return self.record.usual.get(incarnation, ())


def digest_of(id: str) -> int:
    """The digest that identifies an entity in a list."""
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "little")


def object_path(merge_id: str) -> str:
    return f"{HISTORY_PREFIX}/{merge_id}{_SUFFIX}"


def merge_of(path: str) -> str | None:
    """The merge that an object belongs to; None for any other object."""
    prefix, _, name = path.partition("/")
    is_one = prefix == HISTORY_PREFIX and name.endswith(_SUFFIX)
    return name.removesuffix(_SUFFIX) if is_one else None


def write_attribution(objects: ObjectStore, record: MergeRecord, listed: AttributionList) -> None:
    """Store the attribution object of a merge, before the merge is published."""
    hit("history.before_put")
    objects.put(record.path, listed.to_bytes())
    hit("history.after_put")


def read_attribution(timeline: Timeline, objects: ObjectStore, merge_id: str) -> Attribution | None:
    """The attribution of a merge; None if it recorded none, or if its object was removed."""
    row = timeline.find_merge(merge_id)
    if row is None:
        return None
    record = MergeRecord.from_row(row)
    if not record.has_listed:
        return Attribution(record)
    try:
        listed = AttributionList.from_bytes(objects.get(record.path), record.path)
    except ObjectNotFound:
        return None
    return Attribution(record, listed)


def erase_entities(objects: ObjectStore, gone: Mapping[str, Iterable[str]]) -> None:
    """Remove entities from every attribution object, as ``AttributionList.without`` does."""
    for info in objects.list(HISTORY_PREFIX):
        if merge_of(info.path) is None:
            continue
        try:
            listed = AttributionList.from_bytes(objects.get(info.path), info.path)
        except ObjectNotFound:
            continue
        left = listed.without(gone)
        if len(left) < len(listed):
            objects.put(info.path, left.to_bytes())
            hit("history.after_erase")
