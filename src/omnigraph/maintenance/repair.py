"""``repair``: types whose tables moved without being published, and nobody is at them.

Each is classified by who moved it and what that did. Maintenance that some other tool did (joined
files, a new index) can be taken over; what changed rows can be taken over by force, or undone. By
default nothing is done but said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.publication import Publication, Requirements, TableChange
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, TablePin
from omnigraph.errors import Conflict, CorruptData, Drift, InvalidInput, NotFound, OmnigraphError
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import translate
from omnigraph.storage.lance.row_versions import CREATED, WRITTEN
from omnigraph.storage.lance.tables import ROW_ID, TableRef, TableStore
from omnigraph.transaction.recovery.drift import TableDrift, find_drift
from omnigraph.transaction.recovery.operator import Operator
from omnigraph.transaction.recovery.unexplained_drift import uncovered_drift
from omnigraph.transaction.transaction import WriteTransaction

Classification = Literal["no_drift", "verified_maintenance", "suspicious", "unverifiable"]
Action = Literal["no_op", "preview", "healed", "forced", "restored", "refused"]

RESERVE: Final = "ReserveFragments"
MAINTENANCE: Final = frozenset({"CreateIndex", "Rewrite", RESERVE, "UpdateConfig"})
"""Operations of Lance that keep every row as it is; that they did is checked all the same."""
_NOT_SHOWN: Final = "BaseOperation"  # what Lance shows of the first half of its own compaction
_NATIVE_COMPACTION: Final = "Rewrite"  # the one transaction that Lance cannot show


@dataclass(frozen=True, slots=True)
class Repaired:
    """One type: what is wrong with it, and what was done about it."""

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
    """Classify every type of a branch that drifted; heal it as far as was allowed.

    ``confirm`` takes verified maintenance over, ``force`` also what is not, as a commit;
    ``restore`` brings the published rows back instead.
    """
    check_text("actor", actor)
    if (force or restore) and not confirm:
        raise InvalidInput("force and restore need confirm", remedy="Say --confirm as well.")
    if force and restore:
        raise InvalidInput("force and restore exclude each other", remedy="Keep one of them.")
    _require_decided(repository, transaction, branch, resolve=confirm)
    done = []
    for pin in repository.snapshot(branch).pins.values():
        if pin.owner != branch.incarnation:
            continue
        try:
            drift = uncovered_drift(repository, transaction.recovery.pending, branch, pin)
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
            action = _act(
                repository,
                transaction,
                branch,
                pin,
                drift,
                found,
                confirm=confirm,
                force=force,
                restore=restore,
                actor=actor,
            )
            done.append(replace(found, action=action))
        except OmnigraphError as problem:
            done.append(replace(found, action="refused", error=problem.message))
    return done


def _require_decided(
    repository: Repository, transaction: WriteTransaction, branch: Branch, *, resolve: bool
) -> None:
    """Refuse while an unfinished write of the branch cannot be resolved.

    Nobody can say which versions are its doing: what looks like a change from outside may be half
    of it.
    """
    unreadable = transaction.recovery.pending.unreadable(branch.incarnation)
    problems: list[OmnigraphError] = [*unreadable.values()]
    if not problems and resolve:
        recovered = Operator(repository, transaction.recovery).recover()
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
        raise translate(error, f"reading how version {ref.version} was made") from error
    kind = "unknown" if made is None else type(made.operation).__name__
    return RESERVE if kind == _NOT_SHOWN else kind


def _same_rows(store: TableStore, before: TableRef, after: TableRef) -> bool:
    """Whether two versions have the same rows: ids and stamps tell, and change with every write."""
    states = []
    for ref in (before, after):
        rows = store.open(ref).scan([CREATED, WRITTEN], with_row_id=True)
        states.append(rows.sort_by(ROW_ID).select([ROW_ID, CREATED, WRITTEN]).combine_chunks())
    return bool(states[0].equals(states[1]))


def _act(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    pin: TablePin,
    drift: TableDrift,
    found: Repaired,
    *,
    confirm: bool,
    force: bool,
    restore: bool,
    actor: str | None,
) -> Action:
    if not confirm:
        return "preview"
    if found.classification == "verified_maintenance":
        _take_over(repository, branch, pin, drift, None)
        return "healed"
    if restore:
        transaction.recovery.heal_drift(branch, pin, drift)
        if find_drift(repository.tables, repository.snapshot(branch).pin(pin.key).ref).exists:
            raise Conflict(f"{pin.key} moved while it was being restored")
        return "restored"
    if not force:
        return "refused"
    _require_foreign(pin, drift)
    operation = new_ulid()
    commit = Commit(
        commit_id=operation,
        branch=branch.name,
        kind="repair",
        created_at_us=repository.clock.now_us(),
        actor=actor,
        operation_id=operation,
        message=f"take over what {', '.join(found.operations) or 'something'} did to {pin.key}",
    )
    _take_over(repository, branch, pin, drift, commit)
    return "forced"


def _require_foreign(pin: TablePin, drift: TableDrift) -> None:
    """Refuse to publish what an unfinished write of ours moved: it is a part of it (R-5)."""
    ours = sorted(operation for operation in drift.operations() if operation is not None)
    if ours:
        raise Drift(
            f"{pin.key} holds a part of the unfinished write {ours[0]}, which was undone elsewhere",
            remedy="Use --restore: it brings the published rows back. The others stay readable as "
            f"version {drift.newest.version} of {pin.ref.dataset_path} until a cleanup.",
            details={"type_key": pin.key, "operation_id": ours[0]},
        )


def _take_over(
    repository: Repository,
    branch: Branch,
    pin: TablePin,
    drift: TableDrift,
    commit: Commit | None,
) -> None:
    """Publish the newest version as it is. Only the manifest moves."""
    newest = repository.tables.open(drift.newest)
    change = TableChange(
        pin.key,
        drift.newest,
        newest.rows,
        repository.tables.transaction(drift.newest).uuid or "",
        deletes=commit is not None,
        inserts=commit is not None,
        owner=branch.incarnation,
    )
    operation = new_ulid() if commit is None else commit.commit_id
    requirements = Requirements(tables={pin.key: pin.ref})
    hit("repair.before_publish")
    repository.manifest(branch).publish_told(
        Publication(operation, branch.name, requirements, (change,), commit)
    )
    hit("repair.after_publish")
