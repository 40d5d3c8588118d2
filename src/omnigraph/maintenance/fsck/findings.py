"""The findings of a graph check: kinds of damage, and how each is detected."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Damage(StrEnum):
    """Kinds of damage."""

    MANIFEST_UNREADABLE = "manifest_unreadable"  # the catalog of a branch cannot be read
    HEAD_DANGLING = "head_dangling"  # lineage: the head is not a commit of the branch
    LINEAGE_BROKEN = "lineage_broken"  # lineage: a commit without its parent, or two first commits
    SCHEMA_MISSING = "schema_missing"  # lineage: the schema of the head is missing
    TYPE_WITHOUT_TABLE = "type_without_table"  # lineage: the schema has a type without a table
    TABLE_WITHOUT_TYPE = "table_without_type"
    PARENT_UNKNOWN = "parent_unknown"  # registry: the parent of a branch does not exist
    FORK_REF_MISSING = "fork_ref_missing"  # registry: a physical branch without its reference
    TAG_DANGLING = "tag_dangling"  # registry: a tag without its commit
    STATE_MISSING = "state_missing"  # versions of readable history are missing
    ATTRIBUTION_DAMAGED = "attribution_damaged"  # the attribution of a merge cannot be read
    RECORD_UNREADABLE = "record_unreadable"  # the record of an unfinished write cannot be parsed
    VERSION_MISSING = "version_missing"  # the published version of a type is missing
    VERSION_UNREADABLE = "version_unreadable"
    WRONG_VERSION = "wrong_version"  # made by another transaction than the published one
    READS_ELSEWHERE = "reads_elsewhere"  # a moved graph: a branch refers to the old location
    DRIFT = "drift"  # another program changed a table
    ROW_COUNT = "row_count"  # published and stored number of rows differ
    FILE_MISSING = "file_missing"
    FILE_SIZE = "file_size"  # by recorded sizes: truncated or extended files
    FILE_DIGEST = "file_digest"  # by digests, recorded on local disks: changed files
    DELETIONS_DAMAGED = "deletions_damaged"  # a deletion file is missing or truncated
    BLOB_MISSING = "blob_missing"
    ROWS_UNREADABLE = "rows_unreadable"  # by a scan: a data file cannot be decoded
    DUPLICATE_ID = "duplicate_id"
    DUPLICATE_VALUE = "duplicate_value"  # of a key or a unique property
    ORPHAN_EDGE = "orphan_edge"
    INDEX_MISSING = "index_missing"  # files of an index are missing
    INDEX_SIZE = "index_size"  # by the sizes recorded with every index
    INDEX_DISAGREES = "index_disagrees"  # by samples: an index and a scan give different rows


@dataclass(frozen=True, slots=True)
class FsckFinding:
    """One finding of a check."""

    branch: str
    damage: Damage
    subject: str
    """A type, a commit or a file."""
    message: str

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "damage": str(self.damage),
            "subject": self.subject,
            "message": self.message,
        }
