"""What a check of a graph can find: the kinds of damage, each with what it catches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Damage(StrEnum):
    """Kinds of damage, with what catches each."""

    MANIFEST_UNREADABLE = "manifest_unreadable"  # reading: the catalog of a branch cannot be read
    HEAD_DANGLING = "head_dangling"  # lineage: the head is no commit of the branch
    LINEAGE_BROKEN = "lineage_broken"  # lineage: a commit without its parent, or two beginnings
    SCHEMA_MISSING = "schema_missing"  # lineage: the schema of the head is not there
    TYPE_WITHOUT_TABLE = "type_without_table"  # lineage: the schema has a type, the branch no rows
    TABLE_WITHOUT_TYPE = "table_without_type"
    PARENT_UNKNOWN = "parent_unknown"  # registry: a branch of a parent that does not exist
    FORK_REF_MISSING = "fork_ref_missing"  # registry: a physical branch that does not say whose
    TAG_DANGLING = "tag_dangling"  # registry: a tag without its commit
    STATE_MISSING = "state_missing"  # history that should be readable is not
    ATTRIBUTION_DAMAGED = "attribution_damaged"  # who did what on a merged branch cannot be read
    RECORD_UNREADABLE = "record_unreadable"  # a record of an unfinished write makes no sense
    VERSION_MISSING = "version_missing"  # the published version of a type is not there
    VERSION_UNREADABLE = "version_unreadable"
    WRONG_VERSION = "wrong_version"  # the version was made by another transaction than published
    READS_ELSEWHERE = "reads_elsewhere"  # a moved graph: a branch refers to where it was
    DRIFT = "drift"  # a type was changed from outside
    ROW_COUNT = "row_count"  # the published number of rows is not what is stored
    FILE_MISSING = "file_missing"
    FILE_SIZE = "file_size"  # sizes, recorded with every version: cut off, grown
    FILE_DIGEST = "file_digest"  # digests, recorded for writes on local disks: changed, swapped
    DELETIONS_DAMAGED = "deletions_damaged"  # the list of deleted rows is missing or not whole
    BLOB_MISSING = "blob_missing"
    ROWS_UNREADABLE = "rows_unreadable"  # reading: a file whose content makes no sense
    DUPLICATE_ID = "duplicate_id"
    DUPLICATE_VALUE = "duplicate_value"  # of a key or a unique property
    ORPHAN_EDGE = "orphan_edge"
    INDEX_MISSING = "index_missing"  # files of an index are missing
    INDEX_SIZE = "index_size"  # sizes, recorded with every index
    INDEX_DISAGREES = "index_disagrees"  # samples: an index answers otherwise than a scan


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    branch: str
    damage: Damage
    subject: str  # a type, a commit, a file
    message: str

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "damage": str(self.damage),
            "subject": self.subject,
            "message": self.message,
        }
