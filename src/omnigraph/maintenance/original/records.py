"""Recovery records of an original, and what is to be done about each: decided by looking only.

A record names the tables that a writer was going to move, with the version each had. How far they
have moved decides, by the original's own rules: a write is completed when every table moved as
planned, and undone when any did not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from omnigraph.catalog.original.rows import OriginalRows
from omnigraph.catalog.original.schema import identity
from omnigraph.catalog.rows import MAIN
from omnigraph.errors import CorruptData
from omnigraph.storage.lance.tables import TableRef, TableStore
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.storage.paths import RECOVERY_PREFIX

RECORD_VERSION: Final = 2
"""The newest form of a record that the original wrote until 0.8."""
CONFIRMING_VERSION: Final = 2
"""Since this form a merge records the versions it has reached."""
TIME: Final = 10
"""Characters of an id that spell its time."""
_TABLE: Final = re.compile(r"(?:.*/)?((?:nodes|edges)/[0-9a-f]{16})/?")


class Writer(StrEnum):
    """What kind of write a record belongs to."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"


class Resolution(StrEnum):
    """What becomes of the write of a record."""

    FORWARD = "rolled forward"
    BACK = "rolled back"
    DONE = "found published"
    ORPHANED = "discarded with its branch"


class Moved(StrEnum):
    """How far a table has moved, relative to a record and to its published version."""

    NOT = "not"
    AS_PLANNED = "as planned"
    OTHERWISE = "otherwise"


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """One table of a record. ``confirmed`` is what a merge recorded when it had moved it."""

    key: str
    path: str
    branch: str | None
    expected: int
    planned: int
    confirmed: int | None


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """A recovery record of the original."""

    path: str
    version: int
    operation_id: str
    branch: str
    actor: str | None
    writer: Writer
    tables: tuple[RecordedTable, ...]
    merged_commit: str | None
    registrations: Mapping[str, tuple[str, str | None]]
    """Of a schema change: path and physical branch of the tables it adds, by type key."""
    tombstones: Mapping[str, int]

    def commit_id(self, verdict: Resolution) -> str:
        """The id of the commit that records a resolution: whoever resolves it derives the same.

        It has the time of the operation.
        """
        return self.operation_id[:TIME] + identity(f"{self.operation_id} {verdict}")[TIME:]


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table of a record as it is now: published version, newest version, and how it moved."""

    plan: RecordedTable
    published: int
    newest: TableRef
    moved: Moved


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """A record and what is to be done about it."""

    record: WriteRecord
    verdict: Resolution
    tables: tuple[FoundTable, ...] = ()


def read_records(objects: ObjectStore) -> list[WriteRecord]:
    """Every record in the order of operations; raises on one that cannot be read."""
    found = []
    for info in objects.list(RECOVERY_PREFIX):
        if info.path.endswith(".json") and info.path.count("/") == 1:
            found.append(_parse(info.path, objects.get(info.path)))
    return sorted(found, key=lambda record: record.path)


def decide(
    tables: TableStore, record: WriteRecord, rows: OriginalRows, version: int
) -> RecordDecision:
    """What is to be done about a record of a live branch; ``rows`` are those of its manifest."""
    published = rows.visible(version)
    known = {commit.commit_id for commit in rows.commits}
    found = []
    for plan in record.tables:
        newest = tables.open_newest(plan.path, plan.branch).ref
        pinned = published[plan.key].ref.version if plan.key in published else 0
        if newest.version < pinned:
            raise CorruptData(
                f"{record.path}: {plan.key} is at version {newest.version}, below its published "
                f"version {pinned}",
                remedy="Restore the table from a backup; nothing was changed.",
                details={"path": record.path},
            )
        found.append(FoundTable(plan, pinned, newest, _moved(record, plan, pinned, newest)))
    for verdict in (Resolution.FORWARD, Resolution.BACK, Resolution.DONE):
        if record.commit_id(verdict) in known:  # resolved before, up to its audit
            return RecordDecision(record, verdict, tuple(found))
    return RecordDecision(record, _verdict(found), tuple(found))


def _verdict(found: list[FoundTable]) -> Resolution:
    if all(table.moved is Moved.AS_PLANNED for table in found):
        return Resolution.FORWARD
    still = all(table.moved is Moved.NOT for table in found)
    if still and any(table.published > table.plan.expected for table in found):
        return Resolution.DONE
    return Resolution.BACK


def _moved(record: WriteRecord, plan: RecordedTable, published: int, newest: TableRef) -> Moved:
    """The original's classification. Writers of one commit per table are matched exactly; index
    builds, compactions and schema changes by where they began; merges by what they confirmed."""
    if newest.version == published:
        return Moved.NOT
    begun = plan.expected == published
    if record.writer in (Writer.MUTATION, Writer.LOAD):
        exact = newest.version == published + 1 == plan.planned
        return Moved.AS_PLANNED if begun and exact else Moved.OTHERWISE
    if record.writer is Writer.BRANCH_MERGE and record.version >= CONFIRMING_VERSION:
        confirmed = plan.confirmed == newest.version
        return Moved.AS_PLANNED if begun and confirmed else Moved.OTHERWISE
    return Moved.AS_PLANNED if begun else Moved.OTHERWISE


def _parse(path: str, data: bytes) -> WriteRecord:
    try:
        body: dict[str, Any] = json.loads(data)
        version = int(body["schema_version"])
        if version > RECORD_VERSION:
            raise _unreadable(path, f"it has version {version}, newer than {RECORD_VERSION}")
        return WriteRecord(
            path,
            version,
            str(body["operation_id"]),
            body.get("branch") or MAIN,
            body.get("actor_id"),
            Writer(body["writer_kind"]),
            tuple(_planned(table) for table in body["tables"]),
            body.get("merge_source_commit_id"),
            {
                item["table_key"]: (_path(item["table_path"]), item.get("table_branch"))
                for item in body.get("additional_registrations", ())
            },
            {
                item["table_key"]: int(item["tombstone_version"])
                for item in body.get("tombstones", ())
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise _unreadable(path, f"{problem!r}") from problem


def _planned(body: Mapping[str, Any]) -> RecordedTable:
    confirmed = body.get("confirmed_version")
    branch = body.get("table_branch")
    return RecordedTable(
        body["table_key"],
        _path(body["table_path"]),
        None if branch == MAIN else branch,
        int(body["expected_version"]),
        int(body["post_commit_pin"]),
        None if confirmed is None else int(confirmed),
    )


def _path(where: str) -> str:
    """The path of a table inside the graph: records name places, and the graph may have moved."""
    found = _TABLE.fullmatch(where)
    if found is None:
        raise ValueError(f"{where} is not the place of a table")
    return found[1]


def _unreadable(path: str, problem: str) -> CorruptData:
    return CorruptData(
        f"the recovery record {path} cannot be used: {problem}",
        remedy="Open the graph once with the program that wrote it, or remove the record after "
        "looking at it. Nothing was changed.",
        details={"path": path},
    )
