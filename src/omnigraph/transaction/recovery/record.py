"""The recovery record: everything needed to roll a write forward or back, as data.

A record is written once, before the first table moves, and deleted last. Its file name is the
operation's id, which is also the id of the commit it will make. Leases, claims and abort marks
are separate objects with names derived from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from omnigraph.catalog.publication import Publication, Requirements, TableChange
from omnigraph.catalog.rows import Commit, Row, TablePin
from omnigraph.errors import CorruptData
from omnigraph.storage.lance.files.checksums import Digests, read_digests
from omnigraph.storage.lance.fingerprints import Fingerprints, read_fingerprints
from omnigraph.storage.lance.tables import TableRef
from omnigraph.storage.paths import RECOVERY_PREFIX
from omnigraph.transaction.ownership import Owner

RECORD_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table of a write: its base version, the transaction and the expected result."""

    key: str
    base: TableRef  # what is published now
    target: TableRef  # what is written to: the base, or a fresh fork of it
    transaction: str
    rows_after: int
    deletes: bool
    inserts: bool
    removed: Fingerprints = None
    becomes: str | None = None
    digests: Digests = None

    @property
    def landing(self) -> TableRef:
        """The version this table will have when it has moved."""
        return self.target.at(self.target.version + 1)

    def writes_in_place(self, pin: TablePin) -> bool:
        """Whether the write goes to the published table itself rather than to a fork of it."""
        return self.target.at(0) == pin.ref.at(0)

    def change(self, owner: str) -> TableChange:
        return TableChange(
            self.key,
            self.landing,
            self.rows_after,
            self.transaction,
            self.deletes,
            self.inserts,
            owner,
            self.removed,
            self.becomes,
            self.digests,
        )


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """One write in flight."""

    operation_id: str
    branch: str
    branch_incarnation: str
    kind: str
    owner: Owner
    created_at_us: int
    tables: tuple[PlannedTable, ...]
    requirements: Requirements = field(default_factory=Requirements)
    commit: Commit | None = None
    put: tuple[Row, ...] = ()
    drop: tuple[str, ...] = ()
    schema_hash: str | None = None

    @property
    def prefix(self) -> str:
        return recovery_prefix(self.branch_incarnation)

    @property
    def path(self) -> str:
        return f"{self.prefix}/{self.operation_id}.json"

    def publication(self) -> Publication:
        """The publication of the write, if every table has moved as planned."""
        return Publication(
            self.operation_id,
            self.branch,
            self.requirements,
            tuple(table.change(self.branch_incarnation) for table in self.tables),
            self.commit,
            self.put,
            self.drop,
            self.schema_hash,
        )

    def to_bytes(self) -> bytes:
        return json.dumps({"format": RECORD_FORMAT, **asdict(self)}, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> RecoveryRecord:
        """Parse a record; ``CorruptData`` names the file if that is not possible."""
        try:
            body = json.loads(data)
            if body.pop("format") != RECORD_FORMAT:
                raise _unreadable(path, "it has an unsupported format version")
            return cls(
                **{
                    **body,
                    "owner": Owner(**body["owner"]),
                    "tables": tuple(_planned(t) for t in body["tables"]),
                    "requirements": _requirements(body["requirements"]),
                    "commit": None if body["commit"] is None else Commit(**body["commit"]),
                    "put": tuple(_row(r) for r in body["put"]),
                    "drop": tuple(body["drop"]),
                }
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(path, "it is truncated or not a record") from error


def recovery_prefix(branch_incarnation: str) -> str:
    """The prefix of the records of one branch."""
    return f"{RECOVERY_PREFIX}/{branch_incarnation}"


def _planned(data: Mapping[str, Any]) -> PlannedTable:
    refs = {"base": TableRef(**data["base"]), "target": TableRef(**data["target"])}
    removed = read_fingerprints(data.get("removed"))
    digests = read_digests(data.get("digests"))
    return PlannedTable(**{**data, **refs, "removed": removed, "digests": digests})


def _requirements(data: Mapping[str, Any]) -> Requirements:
    tables = {key: TableRef(**ref) for key, ref in data["tables"].items()}
    branches = data["branches"]
    known = None if branches is None else tuple(branches)
    absent = tuple(data.get("absent", ()))
    return Requirements(**{**data, "tables": tables, "branches": known, "absent": absent})


def _row(data: Mapping[str, Any]) -> Row:
    base = data["base_objects"]
    return Row(**{**data, "base_objects": None if base is None else tuple(base)})


def _unreadable(path: str, why: str) -> CorruptData:
    return CorruptData(
        f"the recovery record {path} cannot be read: {why}",
        remedy="Run `omnigraph recover --set-aside`: it rolls the write back and keeps the file. "
        "Until then writes to this branch are refused.",
        details={"path": path},
    )
