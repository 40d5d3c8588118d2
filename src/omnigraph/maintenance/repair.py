"""``repair``: tables with drift, that is versions newer than the published one and no writer.

Each type is classified by the operations that made those versions. Maintenance by another program
(compaction, an index) can be published as it is. Versions that changed rows can be published by
force, as a commit, or be undone. Without ``confirm`` nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, TablePin
from omnigraph.errors import Conflict, CorruptData, Drift, InvalidInput, NotFound, OmnigraphError
from omnigraph.maintenance.publish import MaintenancePublisher
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.errors import translate
from omnigraph.storage.lance.row_versions import CREATED, WRITTEN
from omnigraph.storage.lance.tables import ROW_ID, TableRef, TableStore
from omnigraph.transaction.recovery.drift import TableDrift, find_drift
from omnigraph.transaction.recovery.external_drift import external_drift
from omnigraph.transaction.recovery.graph_recovery import GraphRecovery
from omnigraph.transaction.transaction import WriteTransaction

Classification = Literal["no_drift", "verified_maintenance", "suspicious", "unverifiable"]
Action = Literal["no_op", "preview", "healed", "forced", "restored", "refused"]

RESERVE: Final = "ReserveFragments"
MAINTENANCE: Final = frozenset({"CreateIndex", "Rewrite", RESERVE, "UpdateConfig"})
"""Operations of Lance that change no row; the rows are compared nevertheless."""
_NOT_SHOWN: Final = "BaseOperation"  # Lance's name for the reservation before its own compaction
_NATIVE_COMPACTION: Final = "Rewrite"  # an operation that Lance cannot read back


@dataclass(frozen=True, slots=True)
class Repaired:
    """One type: the classification of its drift, and the action that was taken."""

    type_key: str
    published_version: int
    head_version: int
    classification: Classification = "no_drift"
    action: Action = "no_op"
    operations: tuple[str, ...] = ()
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "type_key": self.type_key,
            "published_dataset_version": self.published_version,
            "lance_head_version": self.head_version,
            "classification": self.classification,
            "action": self.action,
            "operations": list(self.operations),
            "error": self.error,
        }


def repair(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    *,
    confirm: bool = False,
    force: bool = False,
    restore: bool = False,
    actor: str | None = None,
) -> list[Repaired]:
    """Classify the drift of every type of a branch, and repair it as far as is allowed.

    ``confirm`` publishes verified maintenance. ``force`` also publishes versions that changed rows,
    as a commit; ``restore`` restores the published rows instead.
    """
    check_text("actor", actor)
    if (force or restore) and not confirm:
        raise InvalidInput(
            "`force` and `restore` need `confirm`", remedy="Pass confirm=True (`--confirm`)."
        )
    if force and restore:
        raise InvalidInput(
            "`force` and `restore` exclude each other", remedy="Pass only one of them."
        )
    _require_resolved(repository, transaction, branch, resolve=confirm)
    work = _Repair(repository, transaction, branch, confirm, force, restore, actor)
    done = []
    for pin in repository.snapshot(branch).pins.values():
        if pin.owner != branch.incarnation:
            continue
        try:
            drift = external_drift(repository, transaction.recovery.pending, branch, pin)
        except (CorruptData, NotFound) as problem:
            here = Repaired(pin.key, pin.ref.version, pin.ref.version)
            unread = replace(here, classification="unverifiable", action="refused")
            done.append(replace(unread, error=problem.message))
            continue
        if drift is None:
            done.append(Repaired(pin.key, pin.ref.version, pin.ref.version))
            continue
        found = _classify(repository.tables, pin, drift)
        try:
            action = work.act(pin, drift, found)
            done.append(replace(found, action=action))
        except OmnigraphError as problem:
            done.append(replace(found, action="refused", error=problem.message))
    return done


def _require_resolved(
    repository: Repository, transaction: WriteTransaction, branch: Branch, *, resolve: bool
) -> None:
    """Refuse while an unfinished write of the branch cannot be resolved.

    Its versions cannot be told from those of another program, which would be published.
    """
    unreadable = transaction.recovery.pending.unreadable(branch.incarnation)
    problems: list[OmnigraphError] = [*unreadable.values()]
    if not problems and resolve:
        recovered = GraphRecovery(repository, transaction.recovery).recover()
        problems += filter(None, [recovered.unresolved.get(branch.name)])
    for problem in problems:
        raise problem


def _classify(store: TableStore, pin: TablePin, drift: TableDrift) -> Repaired:
    found = Repaired(pin.key, pin.ref.version, drift.newest.version)
    operations: list[str] = []
    classification: Classification = "verified_maintenance"
    for version in range(pin.ref.version + 1, drift.newest.version + 1):
        try:
            operations.append(_operation(store, pin.ref.at(version)))
        except OmnigraphError as problem:
            return replace(found, classification="unverifiable", error=problem.message)
    if not set(operations) <= MAINTENANCE or not _same_rows(store, pin.ref, drift.newest):
        classification = "suspicious"
    return replace(found, classification=classification, operations=tuple(operations))


def _operation(store: TableStore, ref: TableRef) -> str:
    dataset = store.open(ref).private_dataset()
    try:
        made = dataset.read_transaction(ref.version)
    except TypeError:
        return _NATIVE_COMPACTION
    except Exception as error:
        raise translate(error, f"reading the transaction of version {ref.version}") from error
    kind = "unknown" if made is None else type(made.operation).__name__
    return RESERVE if kind == _NOT_SHOWN else kind


def _same_rows(store: TableStore, before: TableRef, after: TableRef) -> bool:
    """Whether two versions have the same rows: every write changes row ids or row versions."""
    states = []
    for ref in (before, after):
        rows = store.open(ref).scan([CREATED, WRITTEN], with_row_id=True)
        states.append(rows.sort_by(ROW_ID).select([ROW_ID, CREATED, WRITTEN]).combine_chunks())
    return bool(states[0].equals(states[1]))


@dataclass(frozen=True, slots=True)
class _Repair:
    repository: Repository
    transaction: WriteTransaction
    branch: Branch
    confirm: bool
    force: bool
    restore: bool
    actor: str | None

    def act(self, pin: TablePin, drift: TableDrift, found: Repaired) -> Action:
        if not self.confirm:
            return "preview"
        publisher = MaintenancePublisher(self.repository, self.transaction, self.branch)
        if found.classification == "verified_maintenance":
            publisher.adopt(pin, drift.newest, None)
            return "healed"
        if self.restore:
            self._restore(pin, drift)
            return "restored"
        if not self.force:
            return "refused"
        _require_foreign(pin, drift)
        operation = new_ulid()
        commit = Commit(
            commit_id=operation,
            branch=self.branch.name,
            kind="repair",
            created_at_us=self.repository.clock.now_us(),
            actor=self.actor,
            operation_id=operation,
            message=f"take over what {', '.join(found.operations) or 'something'} did to {pin.key}",
        )
        publisher.adopt(pin, drift.newest, commit)
        return "forced"

    def _restore(self, pin: TablePin, drift: TableDrift) -> None:
        self.transaction.recovery.undo_drift(self.branch, pin, drift)
        now = self.repository.snapshot(self.branch).pin(pin.key)
        if find_drift(self.repository.tables, now.ref).exists:
            raise Conflict(f"{pin.key} moved while it was being restored")


def _require_foreign(pin: TablePin, drift: TableDrift) -> None:
    """Refuse to publish versions of an unfinished write of Omnigraph: a part of a commit (R-5)."""
    ours = sorted(operation for operation in drift.operations() if operation is not None)
    if ours:
        raise Drift(
            f"{pin.key} holds a part of the unfinished write {ours[0]}, which was undone elsewhere",
            remedy="Use --restore to restore the published rows. The unpublished ones stay "
            f"readable as version {drift.newest.version} of {pin.ref.dataset_path} until a "
            "cleanup.",
            details={"type_key": pin.key, "operation_id": ours[0]},
        )
