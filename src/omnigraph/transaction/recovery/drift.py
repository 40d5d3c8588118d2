"""Drift: a table whose newest version is not the published one, and the operations behind it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.catalog.state import ManifestState
from omnigraph.storage.lance.tables import TableRef, TableStore, TransactionInfo

ROLLBACK_PREFIX = "rollback:"


class Movement(StrEnum):
    """How one table changed since it was published, relative to one operation."""

    NONE = "none"
    OURS = "ours"  # exactly the planned step, by the planned transaction
    UNDONE = "undone"  # made by this operation, but not as planned: a roll-back has begun
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class TableDrift:
    """The versions of one table beyond the published one."""

    published: TableRef
    newest: TableRef
    made_by: tuple[TransactionInfo, ...]

    @property
    def exists(self) -> bool:
        return self.newest.version > self.published.version

    def operations(self) -> set[str | None]:
        """The operations behind the drift; a roll-back counts as the operation it undoes."""
        return {
            None if made.operation is None else made.operation.removeprefix(ROLLBACK_PREFIX)
            for made in self.made_by
        }

    def is_abandoned(self, state: ManifestState, pending: Collection[str]) -> bool:
        """Whether none of the versions can ever be published.

        ``pending`` are the operations that have a record. True for versions of an abandoned
        operation, and for a roll-back without a record: had the roll-back been completed, its
        version would be the published one.
        """
        return all(_is_abandoned(made.operation, state, pending) for made in self.made_by)

    def classify(self, operation_id: str, transaction: str) -> Movement:
        """Classify the drift by the transaction behind each version, never by version counts."""
        if not self.exists:
            return Movement.NONE
        if self.operations() != {operation_id}:
            return Movement.FOREIGN
        only = self.made_by[0]
        as_planned = len(self.made_by) == 1 and only.operation == operation_id
        return Movement.OURS if as_planned and only.uuid == transaction else Movement.UNDONE


def _is_abandoned(made_by: str | None, state: ManifestState, pending: Collection[str]) -> bool:
    if made_by is None:
        return False
    operation = made_by.removeprefix(ROLLBACK_PREFIX)
    if state.row(f"abandoned:{operation}") is not None:
        return True
    return made_by.startswith(ROLLBACK_PREFIX) and operation not in pending


def find_drift(store: TableStore, published: TableRef) -> TableDrift:
    """The versions beyond the published one; one small request when there are none."""
    newest = store.newest_from(published)
    made_by = tuple(
        store.transaction(published.at(version))
        for version in range(published.version + 1, newest.version + 1)
    )
    return TableDrift(published, newest, made_by)
