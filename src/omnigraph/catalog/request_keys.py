"""Idempotency keys: rows of a branch that map a request's key to what the request did.

A key is published in the same commit as its write, and requires that the branch does not have it
yet, so that of two equal requests one wins. A branch keeps the newest keys only. Changes of the
registry of branches and tags keep theirs on main, where the registry is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.rows import Row, RowKind
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import IdempotencyMismatch

REQUEST_KEYS_MAX: Final = 1_000
"""The number of keys that a branch keeps: a request is repeated soon or never."""


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows that a publication adds and removes for a key."""

    put: Row
    drop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The key that a caller gave, and the digest of the request it was given for."""

    key: str
    digest: str

    def find(self, branch: Branch, state: ManifestState) -> Row | None:
        """The row of an earlier request with this key.

        Raises ``IdempotencyMismatch`` if the key was used for a different request.
        """
        row = state.row(self._object_id(branch))
        if row is not None and row.metadata["digest"] != self.digest:
            raise IdempotencyMismatch(
                f"the idempotency key {self.key!r} was used for a different request",
                details={"commit_id": row.metadata["commit_id"]},
            )
        return row

    def rows(
        self, branch: Branch, state: ManifestState, operation: str, result: Mapping[str, Any]
    ) -> KeyRows:
        """The row that keeps a result under this key, and the oldest keys that make room."""
        row = Row(
            self._object_id(branch),
            RowKind.IDEMPOTENCY,
            {"commit_id": operation, "digest": self.digest, "result": dict(result)},
        )
        known = sorted(
            state.rows(RowKind.IDEMPOTENCY), key=lambda item: str(item.metadata["commit_id"])
        )
        evicted = known[: max(0, len(known) + 1 - REQUEST_KEYS_MAX)]
        return KeyRows(row, tuple(item.object_id for item in evicted))

    def _object_id(self, branch: Branch) -> str:
        """The id of the key's row. It contains the incarnation: a fork does not inherit keys."""
        text = f"{branch.incarnation}\0{self.key}"
        return "idem:" + hashlib.sha256(text.encode()).hexdigest()
